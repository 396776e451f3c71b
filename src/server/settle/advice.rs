//! What [`decide`](super::decide) needs to know from the server's settings and the user's functions.

use std::error::Error as StdError;
use std::time::Duration;

use crate::broker::{How, LostLease, Queue, Record};
use crate::defaults::PUT_OFF;
use crate::router::{FailureCause, Outcome, Verdict};
use crate::server::observe::log_limit::log_limited;
use crate::server::settle::decide::{self, Advice, LEASE_EXPIRED};
use crate::server::settle::lease_expired::LeaseExpired;
use crate::server::shared::Shared;
use crate::server::shared::attempt::Attempt;
use crate::server::shared::config::{LostLeases, Undecodable};
use crate::server::shared::failed_attempt::FailedAttempt;
use crate::server::shared::retry_delay::default_retry_delay;

/// For a task that ended with this outcome. The user's functions are called only where their answer
/// matters.
pub(crate) fn on_outcome(shared: &Shared, attempt: &Attempt, outcome: &Outcome) -> Advice {
    let mut advice = Advice {
        spends_retry: true,
        delay: Duration::ZERO,
    };
    let Some(failure) = outcome.failure() else {
        return advice;
    };
    if failure.cause() == FailureCause::Panic {
        shared.counters.panics.add(1);
    }
    if failure.cause() == FailureCause::Undecodable {
        // Another version of the server may know the payload's type as it is now.
        advice.spends_retry = shared.config.undecodable == Undecodable::Archive;
        advice.delay = put_off();
        return advice;
    }
    let given = match failure.verdict() {
        Verdict::Retry => None,
        Verdict::RetryAfter(delay) => Some(delay),
        _ => return advice,
    };
    advice.spends_retry = is_failure(shared, failure.error());
    if decide::has_another(&attempt.record, advice.spends_retry) {
        advice.delay = given.unwrap_or_else(|| {
            let Attempt {
                leased,
                queue,
                record,
                ..
            } = attempt;
            retry_delay(shared, &leased.id, queue, record, &failure.text())
        });
    }
    advice
}

/// For a task whose lease was lost. After the first in a row it does not wait as long as after a
/// failure, because the server and not the task is the likely cause.
pub(crate) fn on_lost_lease(shared: &Shared, queue: &Queue, lost: &LostLease) -> Advice {
    let config = &shared.config;
    let spends_retry =
        config.lost_leases == LostLeases::CountAsFailure && is_failure(shared, &LeaseExpired);
    let LostLease { task, record, .. } = lost;
    let delay = match lost.lost_before {
        _ if !decide::has_another(record, spends_retry) => Duration::ZERO,
        0 => config.lost_lease_delay,
        _ => retry_delay(shared, &task.id, queue, record, LEASE_EXPIRED),
    };
    Advice {
        spends_retry,
        delay,
    }
}

/// What becomes of a task whose kind no handler takes, which this also tells of.
pub(crate) fn unknown_kind(shared: &Shared, attempt: &Attempt) -> How {
    log_limited!(
        shared,
        &*attempt.queue.name,
        warn,
        "this server has no handler for the kind: is one missing in its router, or the kind misspelt?",
        task.id = &*attempt.leased.id,
        task.kind = attempt.record.kind,
    );
    decide::unknown_kind(&attempt.record, shared.config.unknown_kind, put_off())
}

/// For how long a task is put off that another server may be able to run.
fn put_off() -> Duration {
    PUT_OFF.mul_f64(rand::random_range(0.5..1.5))
}

fn is_failure(shared: &Shared, error: &(dyn StdError + Send + Sync + 'static)) -> bool {
    let function = &shared.config.is_failure;
    shared.call("is_failure", || function(error), || true)
}

/// What the task's own policy says, or the server's function, or the default formula.
fn retry_delay(shared: &Shared, id: &str, queue: &Queue, record: &Record, error: &str) -> Duration {
    if let Some(policy) = &record.policy {
        return policy.delay(record.retried);
    }
    let attempt = FailedAttempt {
        id,
        kind: &record.kind,
        queue: &queue.name,
        retried: record.retried,
        max_retry: record.max_retry,
        error,
    };
    let function = &shared.config.retry_delay;
    shared.call(
        "retry_delay",
        || function(&attempt),
        || default_retry_delay(record.retried),
    )
}
