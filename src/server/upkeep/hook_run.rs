use std::sync::Arc;
use std::time::{Duration, UNIX_EPOCH};

use tracing::Instrument;

use crate::broker::{ArchiveReason, HookEnd, Queue, TakenHook};
use crate::defaults::{HOOK_PAUSE_CAP, HOOK_TIMEOUT};
use crate::router::{DeadLetter, DeadLetterHook, FailureCause, HookSlot, Outcome};
use crate::server::observe::event::Event;
use crate::server::observe::event_task::EventTask;
use crate::server::shared::Shared;
use crate::task::RetryPolicy;

const FIRST_PAUSE: Duration = Duration::from_secs(30);

/// Runs the hook of a task that this server has taken, within its time, and tells if it failed.
pub(super) async fn run(
    shared: Arc<Shared>,
    queue: Queue,
    taken: TakenHook,
    slot: HookSlot,
) -> HookEnd {
    // What cannot be read is malformed, and no hook can be given it.
    let Ok(record) = taken.record else {
        return HookEnd::Dropped;
    };
    let Some(hook) = shared.routes.hook(&record.kind) else {
        return HookEnd::Back;
    };
    let pause = pause_after(taken.failed);
    let died_of_attempt = taken.last_failed_at == Some(taken.died_at);
    let attempt = last_attempt(record.retried, &taken.reason, died_of_attempt);
    let letter = DeadLetter {
        id: taken.id,
        kind: record.kind,
        queue: queue.name.to_string(),
        payload: record.payload,
        headers: record.headers,
        attempt,
        retried: attempt.saturating_sub(1),
        max_retry: record.max_retry,
        reason: taken.reason,
        error: taken.error,
        died_at: UNIX_EPOCH + Duration::from_millis(taken.died_at),
    };
    let (id, kind) = (letter.id.clone(), letter.kind.clone());
    let span = tracing::info_span!(
        "dead_letter_hook",
        task.id = id,
        task.kind = kind,
        queue = &*queue.name,
        server.id = &*shared.id,
    );
    match call(&**hook, letter, slot).instrument(span).await {
        Ok(()) => {
            shared.counters.hooks_run.add(1);
            HookEnd::Done
        }
        Err(problem) => {
            if problem.is_panic {
                shared.counters.panics.add(1);
            }
            shared.counters.hooks_failed.add(1);
            let error = problem.text;
            // Each one, because each is a letter that somebody waits for.
            tracing::warn!(
                server.id = &*shared.id,
                task.id = id,
                task.kind = kind,
                queue = &*queue.name,
                ?pause,
                error,
                "a dead-letter hook failed and will be tried again"
            );
            let task = EventTask::new(id, kind, &*queue.name);
            shared.observe(|| Event::hook_failed(task, error));
            HookEnd::Again(pause)
        }
    }
}

/// The number of the attempt that was a task's last; 0 if there was none. `retried` does not count the one
/// that it died of, unless a deadline kept it from another.
fn last_attempt(retried: u32, reason: &str, died_of_attempt: bool) -> u32 {
    let is_counted = reason == ArchiveReason::DeadlinePassed.as_str();
    retried + u32::from(died_of_attempt && !is_counted)
}

/// Until a hook is tried again that has failed now, and so often before.
fn pause_after(failed: u32) -> Duration {
    let pauses = RetryPolicy::exponential(FIRST_PAUSE, 2.0).cap(HOOK_PAUSE_CAP);
    pauses.delay(failed)
}

/// What went wrong with a hook.
struct HookProblem {
    text: String,
    is_panic: bool,
}

async fn call(
    hook: &DeadLetterHook,
    letter: DeadLetter,
    slot: HookSlot,
) -> Result<(), HookProblem> {
    // In a block, so that what the function does before it returns its future is limited too.
    let run = async { hook(letter, slot).await };
    match tokio::time::timeout(HOOK_TIMEOUT, run).await {
        Ok(Outcome::Completed(_)) => Ok(()),
        Ok(Outcome::Failed(failure)) => Err(HookProblem {
            text: failure.text(),
            is_panic: failure.cause() == FailureCause::Panic,
        }),
        Err(_) => Err(HookProblem {
            text: format!("it took longer than {HOOK_TIMEOUT:?}"),
            is_panic: false,
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_letter_tells_which_attempt_was_the_last() {
        for (retried, reason, died_of_attempt, attempt) in [
            (0, "skipped", true, 1),
            (2, "retries_exhausted", true, 3),
            (2, "lease_expired", true, 3),
            (2, "cancelled", true, 3),
            (2, "cancelled", false, 2),
            (0, "cancelled", false, 0),
            // While it waited, and instead of another attempt.
            (0, "deadline_passed", false, 0),
            (2, "deadline_passed", false, 2),
            (2, "deadline_passed", true, 2),
        ] {
            let said = last_attempt(retried, reason, died_of_attempt);
            assert_eq!(said, attempt, "{reason} after {retried}");
        }
    }

    #[test]
    fn pauses_grow_up_to_their_cap() {
        for (failed, seconds) in [
            (0, 30.0),
            (1, 60.0),
            (4, 480.0),
            (5, 600.0),
            (u32::MAX, 600.0),
        ] {
            let pause = pause_after(failed).as_secs_f64();
            assert!(
                (0.89..1.11).contains(&(pause / seconds)),
                "{failed}: {pause} s"
            );
        }
    }
}
