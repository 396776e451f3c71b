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

const REVOKE: How = How::Revoke {
    has_end_effects: false,
};

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
        (after(1, 1, TaskError::revoke("oh"), COUNTS), REVOKE),
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
