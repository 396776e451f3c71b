//! What becomes of a task: from how its attempt ended, its record and what the user's functions said of
//! it. Nothing here asks Redis, a clock or the user.

use std::time::Duration;

use crate::broker::{ArchiveReason, How, Malformed, Record};
use crate::defaults::{MAX_RESULT, MAX_UNDECODABLE};
use crate::router::{CancelReason, Failure, FailureCause, Outcome, Verdict};
use crate::server::setup::config::UnknownKind;

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
    /// It counts as a failure.
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
        Verdict::Revoke => return completed(record, None),
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
mod tests {
    use super::*;
    use crate::router::TaskError;
    use crate::task::PayloadError;
    use crate::user_code::catch;

    const DELAY: Duration = Duration::from_secs(7);
    const COUNTS: Advice = Advice {
        spends_retry: true,
        delay: DELAY,
    };
    const FREE: Advice = Advice {
        spends_retry: false,
        delay: DELAY,
    };

    fn record(retried: u32, max_retry: u32) -> Record {
        Record {
            retried,
            max_retry,
            ..Record::of_kind("kind".into())
        }
    }

    fn retry(spends_retry: bool, lost: Option<u32>, error: &str) -> How {
        How::Retry {
            delay: DELAY,
            spends_retry,
            lost,
            undecodable: None,
            error: error.into(),
        }
    }

    fn archive(reason: ArchiveReason, lost: Option<u32>, error: &str) -> How {
        How::Archive {
            reason,
            lost,
            error: error.into(),
        }
    }

    fn complete(result: Option<Vec<u8>>) -> How {
        How::Complete {
            has_end_effects: false,
            result,
        }
    }

    #[test]
    fn what_becomes_of_a_task_after_a_failure() {
        use ArchiveReason::*;
        let after = |retried, max_retry, error: TaskError, advice| {
            after_attempt(&record(retried, max_retry), Outcome::failed(error), advice)
        };
        let plain = |retried, max_retry, advice| {
            after_attempt(&record(retried, max_retry), Outcome::failed("oh"), advice)
        };
        let snoozed = How::Defer {
            delay: DELAY,
            started: true,
        };
        let exhausted = archive(RetriesExhausted, None, "oh");
        for (how, expected) in [
            (plain(0, 1, COUNTS), retry(true, None, "oh")),
            (plain(1, 1, COUNTS), exhausted.clone()),
            (plain(0, 0, COUNTS), exhausted.clone()),
            (plain(1, 1, FREE), retry(false, None, "oh")),
            (
                after(0, 1, TaskError::retry_after("oh", DELAY), COUNTS),
                retry(true, None, "oh"),
            ),
            (
                after(1, 1, TaskError::retry_after("oh", DELAY), COUNTS),
                exhausted,
            ),
            (
                after(0, 1, TaskError::skip_retry("oh"), COUNTS),
                archive(Skipped, None, "oh"),
            ),
            (after(1, 1, TaskError::revoke("oh"), COUNTS), complete(None)),
            (after(1, 1, TaskError::snooze(DELAY), COUNTS), snoozed),
        ] {
            assert_eq!(how, expected);
        }
    }

    #[test]
    fn a_result_is_kept_only_where_the_record_asks_for_it_and_within_its_cap() {
        let keeps = Record {
            keeps_result: true,
            ..record(0, 0)
        };
        let after = |record: &Record, result: Vec<u8>| {
            after_attempt(record, Outcome::Completed(Some(result)), COUNTS)
        };
        assert_eq!(after(&keeps, vec![1]), complete(Some(vec![1])));
        assert_eq!(after(&record(0, 0), vec![1]), complete(None));
        let largest = vec![0; MAX_RESULT];
        assert_eq!(after(&keeps, largest.clone()), complete(Some(largest)));
        let how = after(&keeps, vec![0; MAX_RESULT + 1]);
        let text = format!(
            "the result has {} bytes and the cap is {MAX_RESULT}",
            MAX_RESULT + 1
        );
        assert_eq!(how, archive(ArchiveReason::Skipped, None, &text));
    }

    #[test]
    fn what_becomes_of_a_task_after_a_lost_lease() {
        let after =
            |retried, in_a_row, advice| after_lost_lease(&record(retried, 1), in_a_row, 3, advice);
        let again = |spends, lost| retry(spends, Some(lost), LEASE_EXPIRED);
        let dead = |lost| archive(ArchiveReason::LeaseExpired, Some(lost), LEASE_EXPIRED);
        for (how, expected) in [
            (after(0, 1, COUNTS), again(true, 1)),
            (after(0, 2, COUNTS), again(true, 2)),
            (after(0, 3, COUNTS), dead(3)),
            (after(1, 1, COUNTS), dead(1)),
            (after(1, 2, FREE), again(false, 2)),
            (after(1, 3, FREE), dead(3)),
            (after(0, u32::MAX, FREE), dead(u32::MAX)),
        ] {
            assert_eq!(how, expected);
        }
    }

    #[test]
    fn how_a_handler_ends_decides_whether_there_is_an_outcome() {
        use CancelReason::*;
        let returned = |error: TaskError, reason| Ended::Returned(Outcome::failed(error), reason);
        let given_up = |reason, still_runs| Ended::GivenUp {
            reason: Some(reason),
            still_runs,
        };
        let said = |ended| match outcome(ended, Some(DELAY)) {
            None => "nothing".to_owned(),
            Some(Err(How::Release { started: true })) => "released".to_owned(),
            Some(Err(How::Release { started: false })) => "released unstarted".to_owned(),
            Some(Ok(Outcome::Failed(failure))) => failure.text(),
            other => format!("{other:?}"),
        };
        let plain = |reason| Ended::Returned(Outcome::failed("oh"), reason);
        let panicked = |reason| {
            let panicked = catch(|| panic!("oh")).expect_err("it panicked");
            Ended::Returned(Failure::from_panic(panicked).into(), reason)
        };
        let returned_unstarted = |reason| {
            let failure = Failure::not_started(std::io::ErrorKind::WouldBlock.into());
            Ended::Returned(failure.into(), reason)
        };
        for (ended, expected) in [
            (plain(None), "oh"),
            (plain(Some(Timeout)), "timed out after 7s: oh"),
            (
                returned(TaskError::skip_retry("no"), Some(Deadline)),
                "cancelled: the task's deadline has come: no",
            ),
            (plain(Some(Requested)), "oh"),
            (plain(Some(Shutdown)), "released"),
            (panicked(Some(Shutdown)), "released"),
            (returned(TaskError::skip_retry("no"), Some(Shutdown)), "no"),
            (returned_unstarted(None), "released unstarted"),
            (returned_unstarted(Some(Timeout)), "released unstarted"),
            (given_up(Timeout, false), "timed out after 7s"),
            (
                given_up(Deadline, true),
                "cancelled: the task's deadline has come",
            ),
            (given_up(Requested, true), "cancelled: it was asked for"),
            (given_up(LeaseLost, false), "nothing"),
            (given_up(Shutdown, false), "released"),
            (given_up(Shutdown, true), "nothing"),
        ] {
            assert_eq!(said(ended), expected);
        }
    }

    #[test]
    fn an_undecodable_payload_is_put_off_so_often_and_then_archived() {
        let failure = || Failure::undecodable(PayloadError::Trailing(1));
        let text = failure().text();
        let after = |undecodable, advice| {
            let record = Record {
                undecodable,
                ..record(0, 0)
            };
            after_attempt(&record, failure().into(), advice)
        };
        let put_off = |times| How::Retry {
            delay: DELAY,
            spends_retry: false,
            lost: None,
            undecodable: Some(times),
            error: text.clone(),
        };
        let archived = archive(ArchiveReason::Undecodable, None, &text);
        for (how, expected) in [
            (after(0, FREE), put_off(1)),
            (
                after(MAX_UNDECODABLE - 2, FREE),
                put_off(MAX_UNDECODABLE - 1),
            ),
            (after(MAX_UNDECODABLE - 1, FREE), archived.clone()),
            (after(u32::MAX, FREE), archived.clone()),
            (after(0, COUNTS), archived),
        ] {
            assert_eq!(how, expected);
        }
    }

    #[test]
    fn a_kind_without_a_handler_is_put_off_or_archived() {
        let after = |policy| unknown_kind(&record(0, 0), policy, DELAY);
        let deferred = How::Defer {
            delay: DELAY,
            started: false,
        };
        assert_eq!(after(UnknownKind::Defer), deferred);
        let text = "no handler for tasks of kind \"kind\"";
        let archived = archive(ArchiveReason::UnknownKind, None, text);
        assert_eq!(after(UnknownKind::Archive), archived);
    }
}
