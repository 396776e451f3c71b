use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, UNIX_EPOCH};

use futures::FutureExt;
use futures::stream::{FuturesUnordered, StreamExt};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use super::connections::Connections;
use super::patience::Patience;
use super::shared::Shared;
use crate::broker::{BrokerError, HookEnd, Queue, TakenHook, end_hooks, take_hooks};
use crate::defaults::{HOOK_TIMEOUT, HOOKS_AT_ONCE};
use crate::router::{DeadLetter, DeadLetterHook, catch};

/// For how long a taken hook is this server's: longer than it may run.
const HOLD: Duration = Duration::from_secs(30);
/// How long a shutdown waits for Redis to hear of hooks that were cut off.
const GIVE_BACK: Duration = Duration::from_millis(200);

/// Runs the dead-letter hooks that are owed, of the kinds that this server has hooks for.
pub(super) struct Hooks {
    pub(super) shared: Arc<Shared>,
    pub(super) connections: Arc<Connections>,
    pub(super) stop: CancellationToken,
}

/// Wakes the hooks of a server when some may be owed.
#[derive(Default)]
pub(super) struct HooksOwed(Notify);

impl HooksOwed {
    pub(super) fn notify(&self) {
        self.0.notify_one();
    }
}

/// A hook that runs, or its end: by queue, id and hold.
struct Held {
    queue: Queue,
    id: String,
    not_before: String,
}

impl Hooks {
    pub(super) async fn run(self) {
        if self.shared.routes.hooked_kinds().len() == 0 {
            return;
        }
        let mut patience = Patience::new("hooks");
        loop {
            let pause = match self.run_owed().await {
                Some(Ok(true)) => continue,
                Some(Ok(false)) => {
                    patience.worked(&self.shared);
                    HOLD
                }
                Some(Err(error)) => patience.failed(&self.shared, &error),
                None => return,
            };
            tokio::select! {
                () = self.stop.cancelled() => return,
                () = self.shared.hooks_owed.0.notified() => {}
                () = tokio::time::sleep(pause) => {}
            }
        }
    }

    /// Takes what is owed and runs it; answers whether more is owed, and `None` when the server
    /// stopped: then what was cut off is owed again at once.
    async fn run_owed(&self) -> Option<Result<bool, BrokerError>> {
        let queues = self.shared.queues.now();
        let mut more = false;
        let mut running = FuturesUnordered::new();
        let mut held = HashMap::new();
        for served in queues.iter() {
            let room = HOOKS_AT_ONCE - held.len();
            if room == 0 {
                more = true;
                break;
            }
            let kinds = self.shared.routes.hooked_kinds();
            let taken =
                match take_hooks(&self.connections.pool, &served.queue, room, HOLD, kinds).await {
                    Ok(taken) => taken,
                    Err(error) => {
                        self.give_back(held.into_values()).await;
                        return Some(Err(error));
                    }
                };
            more |= taken.more;
            self.shared.counters.hooks_dropped.add(taken.dropped);
            for hook in taken.hooks {
                let number = held.len();
                let hold = Held {
                    queue: served.queue.clone(),
                    id: hook.id.clone(),
                    not_before: hook.not_before.clone(),
                };
                held.insert(number, hold);
                running.push(
                    self.run_one(&served.queue, hook)
                        .map(move |end| (number, end)),
                );
            }
        }
        loop {
            let (number, end) = tokio::select! {
                () = self.stop.cancelled() => {
                    drop(running);
                    let give_back = self.give_back(held.into_values());
                    // If Redis does not hear of it, the hold runs out.
                    let _ = tokio::time::timeout(GIVE_BACK, give_back).await;
                    return None;
                }
                ended = running.next() => match ended {
                    Some(ended) => ended,
                    None => return Some(Ok(more)),
                },
            };
            if let Some(hold) = held.remove(&number)
                && let Err(error) = self.end(&hold, end).await
            {
                self.give_back(held.into_values()).await;
                return Some(Err(error));
            }
        }
    }

    async fn run_one(&self, queue: &Queue, taken: TakenHook) -> HookEnd {
        // What cannot be read is malformed, and no hook can be given it.
        let Ok(record) = taken.record else {
            return HookEnd::Done;
        };
        let Some(hook) = self.shared.routes.hook(&record.kind) else {
            return HookEnd::Back;
        };
        let letter = DeadLetter {
            id: taken.id,
            kind: record.kind,
            queue: queue.name.to_string(),
            payload: record.payload,
            retried: record.retried,
            reason: taken.reason,
            error: taken.error,
            died_at: UNIX_EPOCH + Duration::from_millis(taken.died_at),
        };
        let (id, kind) = (letter.id.clone(), letter.kind.clone());
        let problem = match tokio::time::timeout(HOOK_TIMEOUT, call(hook, letter)).await {
            Ok(Ok(())) => {
                self.shared.counters.hooks_run.add(1);
                return HookEnd::Done;
            }
            Ok(Err(problem)) => problem,
            Err(_) => format!("it took longer than {HOOK_TIMEOUT:?}"),
        };
        if let Some(suppressed) = self.shared.log_limit.pass() {
            tracing::warn!(
                task.id = id,
                task.kind = kind,
                queue = &*queue.name,
                error = problem,
                suppressed,
                "a dead-letter hook failed and will be tried again"
            );
        }
        HookEnd::Again(HOLD)
    }

    async fn end(&self, hold: &Held, end: HookEnd) -> Result<(), BrokerError> {
        let end = [(hold.id.as_str(), hold.not_before.as_str(), end)];
        end_hooks(&self.connections.pool, &hold.queue, end.into_iter()).await
    }

    async fn give_back(&self, held: impl Iterator<Item = Held>) {
        for hold in held {
            if let Err(error) = self.end(&hold, HookEnd::Back).await {
                tracing::debug!(
                    error = &error as &dyn std::error::Error,
                    "could not give a dead-letter hook back; its hold runs out"
                );
                return;
            }
        }
    }
}

/// Calls a user's hook, whose panic is a failure.
async fn call(hook: &Arc<DeadLetterHook>, letter: DeadLetter) -> Result<(), String> {
    let run = catch(|| hook(letter)).map_err(|panicked| panicked.to_string())?;
    match std::panic::AssertUnwindSafe(run).catch_unwind().await {
        Ok(Ok(())) => Ok(()),
        Ok(Err(error)) => Err(error.to_string()),
        Err(_) => Err("it panicked".to_owned()),
    }
}
