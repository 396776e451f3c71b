//! The one place where what became of a task is counted, logged and told to the observer, whoever did
//! it: from what Redis answered.

use std::time::Duration;

use crate::broker::{ArchiveReason, Became, ExpiredTask, How, Queue};
use crate::server::Event;
use crate::server::observe::log_limit::log_limited;
use crate::server::observe::task_name::TaskName;
use crate::server::shared::Shared;

/// What became of a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Change<'a> {
    Completed,
    Retried {
        delay: Duration,
        error: &'a str,
    },
    Archived {
        reason: ArchiveReason,
        error: &'a str,
    },
    Deleted,
    Deferred {
        delay: Duration,
    },
    Released,
}

/// What Redis has done to a task that was to be settled so.
fn change(how: &How, became: Became) -> Change<'_> {
    let error = match how {
        How::Retry { error, .. } | How::Archive { error, .. } => error,
        How::Complete { .. } | How::Defer { .. } | How::Release { .. } => "",
    };
    match (became, how) {
        (Became::Archived(reason), _) => Change::Archived { reason, error },
        (Became::Deleted, _) => Change::Deleted,
        (Became::AsAsked, How::Complete { .. }) => Change::Completed,
        (Became::AsAsked, &How::Retry { delay, .. }) => Change::Retried { delay, error },
        (Became::AsAsked, &How::Archive { reason, .. }) => Change::Archived { reason, error },
        (Became::AsAsked, &How::Defer { delay, .. }) => Change::Deferred { delay },
        (Became::AsAsked, How::Release { .. }) => Change::Released,
    }
}

/// Tells what became of a task that was settled.
pub(crate) fn settled(shared: &Shared, task: TaskName<'_>, how: &How, became: Became) {
    report(shared, task, change(how, became));
}

/// Tells of tasks that were archived while they waited, because their deadlines had passed.
pub(crate) fn expired(shared: &Shared, queue: &Queue, tasks: &[ExpiredTask]) {
    for ExpiredTask { id, kind } in tasks {
        let task = TaskName {
            id,
            kind,
            queue,
            attempt: None,
        };
        let change = Change::Archived {
            reason: ArchiveReason::DeadlinePassed,
            error: "",
        };
        report(shared, task, change);
    }
}

fn report(shared: &Shared, task: TaskName<'_>, change: Change<'_>) {
    let counters = &shared.counters;
    match change {
        Change::Completed => counters.completed.add(1),
        Change::Released => counters.released.add(1),
        Change::Deferred { delay } => {
            counters.deferred.add(1);
            shared.due.hint(task.queue, delay);
        }
        Change::Retried { delay, error } => {
            counters.retried.add(1);
            if !delay.is_zero() {
                shared.due.hint(task.queue, delay);
            }
            retried(shared, task, delay, error);
        }
        Change::Archived { reason, error } => {
            counters.archived.add(1);
            shared.hooks_owed.notify();
            archived(shared, task, reason, error);
        }
        Change::Deleted => {
            counters.deleted.add(1);
            deleted(shared, task);
        }
    }
}

fn retried(shared: &Shared, task: TaskName<'_>, delay: Duration, error: &str) {
    log_limited!(
        shared,
        &*task.queue.name,
        info,
        "the task failed and will be retried",
        task.id = task.id,
        task.kind = task.kind,
        attempt = task.attempt,
        ?delay,
        error,
    );
    shared.observe(|| Event::Retried {
        id: task.id.to_owned(),
        kind: task.kind.to_owned(),
        queue: task.queue.name.to_string(),
        delay,
        error: error.to_owned(),
    });
}

fn archived(shared: &Shared, task: TaskName<'_>, reason: ArchiveReason, error: &str) {
    if reason == ArchiveReason::Malformed {
        shared.malformed(&task.queue.name, &[task.id.to_owned()]);
        return;
    }
    log_limited!(
        shared,
        &*task.queue.name,
        warn,
        "the task was archived",
        task.id = task.id,
        task.kind = task.kind,
        attempt = task.attempt,
        reason = reason.as_str(),
        error,
    );
    shared.observe(|| Event::Archived {
        id: task.id.to_owned(),
        kind: task.kind.to_owned(),
        queue: task.queue.name.to_string(),
        reason,
        error: error.to_owned(),
    });
}

fn deleted(shared: &Shared, task: TaskName<'_>) {
    log_limited!(
        shared,
        &*task.queue.name,
        info,
        "the task was deleted, because somebody cancelled it",
        task.id = task.id,
        task.kind = task.kind,
        attempt = task.attempt,
    );
    shared.observe(|| Event::Deleted {
        id: task.id.to_owned(),
        kind: task.kind.to_owned(),
        queue: task.queue.name.to_string(),
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_told_is_what_redis_did() {
        use ArchiveReason::*;
        let delay = Duration::from_secs(7);
        let error = "oh";
        let complete = How::Complete {
            has_end_effects: true,
            result: None,
        };
        let retry = How::Retry {
            delay,
            spends_retry: true,
            lost: None,
            undecodable: None,
            error: error.into(),
        };
        let archive = How::Archive {
            reason: RetriesExhausted,
            lost: None,
            error: error.into(),
        };
        let defer = How::Defer {
            delay,
            started: true,
        };
        let release = How::Release { started: true };
        let archived = |reason, error| Change::Archived { reason, error };
        for (how, became, expected) in [
            (&complete, Became::AsAsked, Change::Completed),
            (&retry, Became::AsAsked, Change::Retried { delay, error }),
            (
                &retry,
                Became::Archived(DeadlinePassed),
                archived(DeadlinePassed, error),
            ),
            (
                &retry,
                Became::Archived(Cancelled),
                archived(Cancelled, error),
            ),
            (&retry, Became::Deleted, Change::Deleted),
            (&archive, Became::AsAsked, archived(RetriesExhausted, error)),
            (
                &archive,
                Became::Archived(Operator),
                archived(Operator, error),
            ),
            (&defer, Became::AsAsked, Change::Deferred { delay }),
            (&defer, Became::Archived(Cancelled), archived(Cancelled, "")),
            (&release, Became::AsAsked, Change::Released),
            (&release, Became::Deleted, Change::Deleted),
        ] {
            assert_eq!(change(how, became), expected, "{how:?} {became:?}");
        }
    }
}
