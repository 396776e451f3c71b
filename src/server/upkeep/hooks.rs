use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, UNIX_EPOCH};

use futures::FutureExt;
use futures::stream::{FuturesUnordered, StreamExt};
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;
use tracing::Instrument;

use crate::broker::{BrokerError, HookEnd, Queue, TakenHook, end_hooks, take_hooks};
use crate::defaults::{HOOK_TIMEOUT, HOOKS_AT_ONCE};
use crate::router::{DeadLetter, FailureCause, Outcome};
use crate::server::backoff::Backoff;
use crate::server::observe::log_limit::log_limited;
use crate::server::setup::connections::Connections;
use crate::server::shared::Shared;

/// For how long a taken hook is this server's: longer than it may run.
const HOLD: Duration = Duration::from_secs(30);
/// How long a shutdown waits for Redis to hear of hooks that were cut off.
const GIVE_BACK: Duration = Duration::from_millis(200);

/// Runs the dead-letter hooks that are owed, of the kinds that this server has hooks for.
pub(crate) struct Hooks {
    pub(crate) shared: Arc<Shared>,
    pub(crate) connections: Arc<Connections>,
    pub(crate) stop: CancellationToken,
}

/// A hook that runs, or its end: by queue, id and hold.
struct Held {
    queue: Queue,
    id: String,
    not_before: String,
}

impl Hooks {
    pub(crate) async fn run(self) {
        if self.shared.routes.hooked_kinds().len() == 0 {
            return;
        }
        let mut backoff = Backoff::new("hooks");
        let mut running = FuturesUnordered::new();
        let mut held = HashMap::new();
        let mut next_number = 0u64;
        let mut look_at = Instant::now();
        loop {
            if held.len() < HOOKS_AT_ONCE && look_at <= Instant::now() {
                let (taken, looked) = self.take(HOOKS_AT_ONCE - held.len()).await;
                for (hold, hook) in taken {
                    let number = next_number;
                    next_number += 1;
                    let run = self.run_one(hold.queue.clone(), hook);
                    running.push(run.map(move |end| (number, end)));
                    held.insert(number, hold);
                }
                look_at = match looked {
                    Ok(more) => {
                        backoff.worked(&self.shared);
                        // More are owed: as soon as there is room.
                        Instant::now() + if more { Duration::ZERO } else { HOLD }
                    }
                    Err(error) => Instant::now() + backoff.failed(&self.shared, &error),
                };
            }
            tokio::select! {
                biased;
                () = self.stop.cancelled() => break,
                Some((number, end)) = running.next() => {
                    if let Some(hold) = held.remove(&number)
                        && let Err(error) = self.end(&hold, end).await
                    {
                        // Its hold runs out, and it is run once more.
                        look_at = Instant::now() + backoff.failed(&self.shared, &error);
                    }
                }
                () = self.shared.hooks_owed.notified() => look_at = Instant::now(),
                () = sleep_until(look_at), if held.len() < HOOKS_AT_ONCE => {}
            }
        }
        drop(running);
        let give_back = self.give_back(held.into_values());
        // If Redis does not hear of it, the holds run out.
        let _ = tokio::time::timeout(GIVE_BACK, give_back).await;
    }

    /// Takes up to `room` hooks that are owed; answers also whether more are, or why that is unknown.
    async fn take(&self, room: usize) -> (Vec<(Held, TakenHook)>, Result<bool, BrokerError>) {
        let queues = self.shared.queues.now();
        let (mut hooks, mut more) = (Vec::new(), false);
        // Each time another queue comes first, so that none starves.
        let first = rand::random_range(0..queues.len().max(1));
        for served in queues[first..].iter().chain(&queues[..first]) {
            if hooks.len() == room {
                return (hooks, Ok(true));
            }
            let (kinds, left) = (self.shared.routes.hooked_kinds(), room - hooks.len());
            match take_hooks(&self.connections.pool, &served.queue, left, HOLD, kinds).await {
                Ok(taken) => {
                    more |= taken.more;
                    self.shared.counters.hooks_dropped.add(taken.dropped);
                    hooks.extend(taken.hooks.into_iter().map(|hook| {
                        let hold = Held {
                            queue: served.queue.clone(),
                            id: hook.id.clone(),
                            not_before: hook.not_before.clone(),
                        };
                        (hold, hook)
                    }));
                }
                Err(error) => return (hooks, Err(error)),
            }
        }
        (hooks, Ok(more))
    }

    async fn run_one(&self, queue: Queue, taken: TakenHook) -> HookEnd {
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
        let span = tracing::info_span!(
            "dead_letter_hook",
            task.id = id,
            task.kind = kind,
            queue = &*queue.name,
            server.id = &*self.shared.id,
        );
        // Also what the function does before it returns its future.
        let run = async { hook(letter).await }.instrument(span);
        let problem = match tokio::time::timeout(HOOK_TIMEOUT, run).await {
            Ok(Outcome::Completed(_)) => {
                self.shared.counters.hooks_run.add(1);
                return HookEnd::Done;
            }
            Ok(Outcome::Failed(failure)) => {
                if failure.cause() == FailureCause::Panic {
                    self.shared.counters.panics.add(1);
                }
                failure.text()
            }
            Err(_) => format!("it took longer than {HOOK_TIMEOUT:?}"),
        };
        log_limited!(
            self.shared,
            &*queue.name,
            warn,
            "a dead-letter hook failed and will be tried again",
            task.id = id,
            task.kind = kind,
            error = problem,
        );
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
