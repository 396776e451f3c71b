//! What becomes of a task: from how its attempt ended, its record and what the user's functions said of
//! it. Nothing here asks Redis, a clock or the user.

use std::time::Duration;

use crate::broker::{ArchiveReason, How, Malformed, Record};
use crate::defaults::{MAX_RESULT, MAX_UNDECODABLE};
use crate::router::{CancelReason, Failure, FailureCause, Outcome, Verdict};
use crate::server::shared::config::UnknownKind;

/// What a lost lease leaves as the task's error.
pub(crate) const LEASE_EXPIRED: &str = "lease expired: its server died or lost its connection";

/// How the handler of an attempt came to its end.
#[derive(Debug)]
pub(crate) enum Ended {
    /// It returned, perhaps after it was cancelled.
    Returned(Outcome, Option<CancelReason>),
    /// It did not return within the grace after its cancellation.
    GivenUp {
        reason: Option<CancelReason>,
        /// It blocks a thread, which nobody can end.
        still_runs: bool,
    },
}

/// What the server's settings and the user's functions say of a failed attempt.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Advice {
    /// It counts as a failure. Of a payload that does not decode: it is not put off, but archived.
    pub(crate) spends_retry: bool,
    /// Until the next attempt, if there is one.
    pub(crate) delay: Duration,
}

/// The outcome of an attempt, which may take `limit`, or what becomes of a task that has none. `None`:
/// nothing may be settled.
pub(crate) fn outcome(ended: Ended, limit: Option<Duration>) -> Option<Result<Outcome, How>> {
    const RELEASE: How = How::Release { started: true };
    match ended {
        Ended::Returned(Outcome::Failed(failure), _)
            if failure.cause() == FailureCause::NotStarted =>
        {
            Some(Err(How::Release { started: false }))
        }
        // A handler that fails because the server stops has not failed: unless it gives a verdict of
        // its own, its task is handed back.
        Ended::Returned(Outcome::Failed(failure), Some(CancelReason::Shutdown))
            if failure.is_plain() =>
        {
            Some(Err(RELEASE))
        }
        Ended::Returned(Outcome::Failed(failure), Some(reason)) if is_limit(reason) => {
            Some(Ok(failure.past(cut_off(reason, limit)).into()))
        }
        Ended::Returned(outcome, _) => Some(Ok(outcome)),
        Ended::GivenUp { reason, still_runs } => match reason.unwrap_or(CancelReason::Requested) {
            CancelReason::LeaseLost => None,
            // Handing the task back would let it run twice at once.
            CancelReason::Shutdown if still_runs => None,
            CancelReason::Shutdown => Some(Err(RELEASE)),
            reason => Some(Ok(cut_off(reason, limit).into())),
        },
    }
}

/// Whether this is the time that an attempt may take, and not somebody's wish.
pub(crate) fn is_limit(reason: CancelReason) -> bool {
    matches!(reason, CancelReason::Timeout | CancelReason::Deadline)
}

fn cut_off(reason: CancelReason, limit: Option<Duration>) -> Failure {
    match limit {
        Some(limit) if reason == CancelReason::Timeout => Failure::timeout(limit),
        _ => Failure::cancelled(reason),
    }
}

/// What becomes of a task after an attempt.
pub(crate) fn after_attempt(record: &Record, outcome: Outcome, advice: Advice) -> How {
    match outcome {
        Outcome::Completed(result) => completed(record, result),
        Outcome::Failed(failure) => failed(record, &failure, advice),
    }
}

fn completed(record: &Record, result: Option<Vec<u8>>) -> How {
    match result.filter(|_| record.keeps_result) {
        // Another attempt would repeat what the handler did.
        Some(result) if result.len() > MAX_RESULT => How::Archive {
            reason: ArchiveReason::Skipped,
            lost: None,
            error: format!(
                "the result has {} bytes and the cap is {MAX_RESULT}",
                result.len()
            ),
        },
        result => How::Complete {
            has_end_effects: record.has_end_effects,
            result,
        },
    }
}

fn failed(record: &Record, failure: &Failure, advice: Advice) -> How {
    let reason = match failure.verdict() {
        Verdict::Revoke => {
            return How::Revoke {
                has_end_effects: record.has_end_effects,
            };
        }
        Verdict::Snooze(delay) => {
            return How::Defer {
                delay,
                started: true,
            };
        }
        Verdict::SkipRetry if failure.cause() == FailureCause::Undecodable => {
            let times = record.undecodable.saturating_add(1);
            if !advice.spends_retry && times < MAX_UNDECODABLE {
                return How::Retry {
                    delay: advice.delay,
                    spends_retry: false,
                    lost: None,
                    undecodable: Some(times),
                    error: failure.text(),
                };
            }
            ArchiveReason::Undecodable
        }
        Verdict::SkipRetry => ArchiveReason::Skipped,
        Verdict::Retry | Verdict::RetryAfter(_) if has_another(record, advice.spends_retry) => {
            return How::Retry {
                delay: advice.delay,
                spends_retry: advice.spends_retry,
                lost: None,
                undecodable: None,
                error: failure.text(),
            };
        }
        Verdict::Retry | Verdict::RetryAfter(_) => ArchiveReason::RetriesExhausted,
    };
    How::Archive {
        reason,
        lost: None,
        error: failure.text(),
    }
}

/// Whether a failed attempt is followed by another.
pub(crate) fn has_another(record: &Record, spends_retry: bool) -> bool {
    !spends_retry || record.retried < record.max_retry
}

/// What becomes of a task whose lease was lost: `in_a_row` counts such leases, this one included. Too
/// many in a row are given up, whatever retries are left: the task may be what kills its servers.
pub(crate) fn after_lost_lease(
    record: &Record,
    in_a_row: u32,
    max_in_a_row: u32,
    advice: Advice,
) -> How {
    let (lost, error) = (Some(in_a_row), LEASE_EXPIRED.to_owned());
    if in_a_row >= max_in_a_row || !has_another(record, advice.spends_retry) {
        return How::Archive {
            reason: ArchiveReason::LeaseExpired,
            lost,
            error,
        };
    }
    How::Retry {
        delay: advice.delay,
        spends_retry: advice.spends_retry,
        lost,
        undecodable: None,
        error,
    }
}

/// What becomes of a task whose kind no handler takes.
pub(crate) fn unknown_kind(record: &Record, policy: UnknownKind, delay: Duration) -> How {
    match policy {
        UnknownKind::Defer => How::Defer {
            delay,
            started: false,
        },
        UnknownKind::Archive => How::Archive {
            reason: ArchiveReason::UnknownKind,
            lost: None,
            error: format!("no handler for tasks of kind {:?}", record.kind),
        },
    }
}

/// What becomes of a task whose record cannot be read.
pub(crate) fn malformed(malformed: &Malformed) -> How {
    How::Archive {
        reason: ArchiveReason::Malformed,
        lost: None,
        error: malformed.to_string(),
    }
}

#[cfg(test)]
mod tests;
