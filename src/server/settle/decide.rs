use std::time::Duration;

use crate::broker::{Archival, ArchiveReason, Completion, Deferral, LeasedId, Retrial};
use crate::defaults::{MAX_RESULT, UNKNOWN_KIND_DELAY};
use crate::router::{Failure, FailureCause, Outcome, Verdict};
use crate::server::settle::settlement::End;
use crate::server::setup::config::UnknownKind;
use crate::server::shared::Shared;
use crate::server::{Event, FailedAttempt, default_retry_delay};
use crate::task::RetryPolicy;

/// The task of a run, as far as its end depends on it.
pub(crate) struct Tried<'a> {
    pub(crate) leased: &'a LeasedId,
    pub(crate) kind: &'a str,
    pub(crate) queue: &'a str,
    pub(crate) retried: u32,
    pub(crate) max_retry: u32,
    pub(crate) policy: Option<&'a RetryPolicy>,
    pub(crate) keeps_result: bool,
    pub(crate) has_end_effects: bool,
}

/// How a run ends, by what its handler answered.
pub(crate) fn after_outcome(shared: &Shared, tried: &Tried<'_>, outcome: Outcome) -> End {
    match outcome {
        Outcome::Completed(result) => completed(shared, tried, result),
        Outcome::Failed(failure) => after_failure(shared, tried, &failure),
    }
}

fn completed(shared: &Shared, tried: &Tried<'_>, result: Option<Vec<u8>>) -> End {
    let result = result.filter(|_| tried.keeps_result);
    match &result {
        // Trying again would repeat what the handler did.
        Some(bytes) if bytes.len() > MAX_RESULT => {
            let error = format!(
                "the result has {} bytes and the cap is {MAX_RESULT}",
                bytes.len()
            );
            archived(shared, tried, ArchiveReason::Skipped, error)
        }
        _ => gone(tried, result),
    }
}

fn gone(tried: &Tried<'_>, result: Option<Vec<u8>>) -> End {
    End::Complete(Completion {
        task: tried.leased.clone(),
        has_end_effects: tried.has_end_effects,
        result,
    })
}

fn after_failure(shared: &Shared, tried: &Tried<'_>, failure: &Failure) -> End {
    if failure.cause() == FailureCause::Panic {
        shared.counters.panics.add(1);
    }
    let error = failure.text();
    match failure.verdict() {
        Verdict::Revoke => gone(tried, None),
        Verdict::Snooze(delay) => deferred(tried, delay, true),
        Verdict::SkipRetry => {
            let reason = match failure.cause() {
                FailureCause::Undecodable => ArchiveReason::Undecodable,
                _ => ArchiveReason::Skipped,
            };
            archived(shared, tried, reason, error)
        }
        Verdict::RetryAfter(delay) => {
            retried_or_exhausted(shared, tried, failure, error, Some(delay))
        }
        Verdict::Retry => retried_or_exhausted(shared, tried, failure, error, None),
    }
}

fn retried_or_exhausted(
    shared: &Shared,
    tried: &Tried<'_>,
    failure: &Failure,
    error: String,
    delay: Option<Duration>,
) -> End {
    let is_failure = &shared.config.is_failure;
    let spends_retry = shared.call("is_failure", || is_failure(failure.error()), || true);
    if spends_retry && tried.retried >= tried.max_retry {
        return archived(shared, tried, ArchiveReason::RetriesExhausted, error);
    }
    let delay = delay.unwrap_or_else(|| retry_delay(shared, tried, &error));
    if let Some(suppressed) = shared.retry_log_limit.pass() {
        tracing::info!(
            task.id = &*tried.leased.id,
            task.kind = tried.kind,
            queue = tried.queue,
            attempt = u64::from(tried.retried) + 1,
            ?delay,
            error,
            suppressed,
            "the task failed and will be retried"
        );
    }
    shared.observe(|| Event::Retried {
        id: tried.leased.id.to_string(),
        kind: tried.kind.to_owned(),
        queue: tried.queue.to_owned(),
        delay,
        error: error.clone(),
    });
    End::Retry(Retrial {
        task: tried.leased.clone(),
        delay,
        spends_retry,
        lost: None,
        error,
    })
}

fn archived(shared: &Shared, tried: &Tried<'_>, reason: ArchiveReason, error: String) -> End {
    report_archived(shared, tried, reason, &error);
    End::Archive(Archival {
        task: tried.leased.clone(),
        reason,
        lost: None,
        error,
    })
}

fn deferred(tried: &Tried<'_>, delay: Duration, started: bool) -> End {
    End::Defer(Deferral {
        task: tried.leased.clone(),
        delay,
        started,
    })
}

/// Says that a task is given up.
pub(crate) fn report_archived(
    shared: &Shared,
    tried: &Tried<'_>,
    reason: ArchiveReason,
    error: &str,
) {
    let reason = reason.as_str();
    if let Some(suppressed) = shared.archive_log_limit.pass() {
        tracing::warn!(
            task.id = &*tried.leased.id,
            task.kind = tried.kind,
            queue = tried.queue,
            attempt = u64::from(tried.retried) + 1,
            reason,
            error,
            suppressed,
            "the task was archived"
        );
    }
    shared.observe(|| Event::Archived {
        id: tried.leased.id.to_string(),
        kind: tried.kind.to_owned(),
        queue: tried.queue.to_owned(),
        reason,
        error: error.to_owned(),
    });
}

/// What the task's own policy says, or the server's function, or the default formula.
pub(crate) fn retry_delay(shared: &Shared, tried: &Tried<'_>, error: &str) -> Duration {
    if let Some(policy) = tried.policy {
        return policy.delay(tried.retried);
    }
    let attempt = FailedAttempt {
        id: &tried.leased.id,
        kind: tried.kind,
        queue: tried.queue,
        retried: tried.retried,
        max_retry: tried.max_retry,
        error,
    };
    let function = &shared.config.retry_delay;
    shared.call(
        "retry_delay",
        || function(&attempt),
        || default_retry_delay(tried.retried),
    )
}

/// What happens to a task whose kind no handler knows.
pub(crate) fn unknown_kind(shared: &Shared, tried: &Tried<'_>) -> End {
    if let Some(suppressed) = shared.log_limit.pass() {
        tracing::warn!(
            task.id = &*tried.leased.id,
            task.kind = tried.kind,
            queue = tried.queue,
            suppressed,
            "this server has no handler for the kind: is one missing in its router, or the kind misspelt?"
        );
    }
    match shared.config.unknown_kind {
        UnknownKind::Defer => {
            let delay = UNKNOWN_KIND_DELAY.mul_f64(rand::random_range(0.5..1.5));
            deferred(tried, delay, false)
        }
        UnknownKind::Archive => {
            let error = format!("no handler for tasks of kind {:?}", tried.kind);
            archived(shared, tried, ArchiveReason::UnknownKind, error)
        }
    }
}
