//! The one place where what became of a task is counted, logged and told to the observer, whoever did
//! it: from what Redis answered.

use std::time::Duration;

use crate::broker::{ArchiveReason, Became, DEADLINE_PASSED, DroppedHook, ExpiredTask, How, Queue};
use crate::server::observe::event::Event;
use crate::server::observe::event_task::EventTask;
use crate::server::observe::log_limit::log_limited;
use crate::server::observe::task_name::TaskName;
use crate::server::shared::Shared;

/// Tells what became of a task that was settled so.
pub(crate) fn settled(shared: &Shared, task: TaskName<'_>, how: &How, became: Became) {
    let (counters, delay) = (&shared.counters, how.delay());
    match became {
        Became::Completed => counters.completed.add(1),
        Became::Released => counters.released.add(1),
        Became::Deferred => {
            counters.deferred.add(1);
            shared.due.hint(task.queue, delay);
        }
        Became::Retried => {
            counters.retried.add(1);
            if !delay.is_zero() {
                shared.due.hint(task.queue, delay);
            }
            retried(shared, task, delay, how.error());
        }
        Became::Archived(reason @ ArchiveReason::DeadlinePassed) => {
            let error = format!("{DEADLINE_PASSED}: {}", how.error());
            archived(shared, task, reason, &error);
        }
        Became::Archived(reason) => archived(shared, task, reason, how.error()),
        Became::Deleted => {
            counters.deleted.add(1);
            deleted(shared, task);
        }
        Became::Superseded => {
            counters.superseded.add(1);
            superseded(shared, task, how.error());
        }
    }
}

/// Tells of tasks that were archived while they waited, because their deadlines had passed.
pub(crate) fn expired(shared: &Shared, queue: &Queue, tasks: &[ExpiredTask]) {
    for ExpiredTask { id, kind, error } in tasks {
        let task = TaskName {
            id,
            kind,
            queue,
            attempt: None,
        };
        archived(shared, task, ArchiveReason::DeadlinePassed, error);
    }
}

/// Tells of owed dead-letter hooks that will not run.
pub(crate) fn hooks_dropped(shared: &Shared, queue: &Queue, hooks: &[DroppedHook]) {
    shared.counters.hooks_dropped.add(hooks.len());
    for DroppedHook { id, kind } in hooks {
        log_limited!(
            shared,
            &*queue.name,
            warn,
            "a dead-letter hook is dropped: its task has left the archive, or cannot be read",
            task.id = id,
            task.kind = kind,
        );
        shared.observe(|| Event::hook_dropped(EventTask::new(id, kind, &*queue.name)));
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
    shared.observe(|| Event::retried(task, delay, error));
}

fn archived(shared: &Shared, task: TaskName<'_>, reason: ArchiveReason, error: &str) {
    shared.counters.archived.add(1);
    shared.hooks_owed.notify();
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
    shared.observe(|| Event::archived(task, reason, error));
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
    shared.observe(|| Event::deleted(task));
}

fn superseded(shared: &Shared, task: TaskName<'_>, error: &str) {
    log_limited!(
        shared,
        &*task.queue.name,
        info,
        "the attempt did not succeed, and the task was dropped, because a newer one has taken its place",
        task.id = task.id,
        task.kind = task.kind,
        attempt = task.attempt,
        error,
    );
    shared.observe(|| Event::superseded(task, error));
}
