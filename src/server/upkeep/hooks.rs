use std::collections::HashMap;
use std::sync::{Arc, Weak};
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::{self, JoinError, JoinSet};
use tokio::time::{Instant, sleep_until, timeout_at};
use tokio_util::sync::CancellationToken;

use crate::broker::{BrokerError, DroppedHook, HookEnd, Queue, TakenHook, end_hooks, take_hooks};
use crate::defaults::{HOOK_GRACE, HOOKS_AT_ONCE};
use crate::server::settle::report;
use crate::server::shared::Shared;
use crate::server::shared::backoff::Backoff;
use crate::server::shared::connections::Connections;
use crate::server::upkeep::hook_run;

/// For how long a taken hook is this server's: longer than it may run.
const HOLD: Duration = Duration::from_secs(30);
/// How long hooks may take to end that were cut off: until their next `await`.
const CUT: Duration = Duration::from_millis(30);

/// Runs the dead-letter hooks that are owed, of the kinds that this server has hooks for: each in a
/// runtime task of its own.
pub(crate) struct Hooks {
    shared: Arc<Shared>,
    connections: Arc<Connections>,
    stop: CancellationToken,
    running: JoinSet<HookEnd>,
    held: HashMap<task::Id, Held>,
    /// One for each hook that may run.
    slots: Arc<Semaphore>,
}

/// A hook that runs: by queue, id and hold.
struct Held {
    queue: Queue,
    id: String,
    not_before: String,
    slot: Weak<OwnedSemaphorePermit>,
}

impl Held {
    fn dropped(&self) -> DroppedHook {
        DroppedHook {
            id: self.id.clone(),
            kind: String::new(),
        }
    }
}

/// A hook that has ended, and how.
type Ended = Result<(task::Id, HookEnd), JoinError>;

impl Hooks {
    pub(crate) fn new(
        shared: Arc<Shared>,
        connections: Arc<Connections>,
        stop: CancellationToken,
    ) -> Self {
        Self {
            shared,
            connections,
            stop,
            running: JoinSet::new(),
            held: HashMap::new(),
            slots: Arc::new(Semaphore::new(HOOKS_AT_ONCE)),
        }
    }

    /// Until it is asked to stop.
    pub(crate) async fn run(mut self) {
        let mut backoff = Backoff::new("hooks");
        let mut look_at = Instant::now();
        loop {
            let slots = self.slots.clone();
            let room = async move {
                sleep_until(look_at).await;
                // Those of blocking hooks that were given up come free by themselves.
                drop(slots.acquire().await);
            };
            tokio::select! {
                biased;
                () = self.stop.cancelled() => break,
                Some(ended) = self.running.join_next_with_id() => {
                    if let Some((held, end)) = self.release(ended)
                        && let Err(error) = self.tell(&held.queue, &[(&held, end)]).await
                    {
                        // Its hold runs out, and it is run once more.
                        look_at = Instant::now() + backoff.failed(&self.shared, &error);
                    }
                }
                () = self.shared.hooks_owed.notified() => look_at = Instant::now(),
                () = room => look_at = match self.take().await {
                    Ok(more) => {
                        backoff.worked(&self.shared);
                        // More are owed: as soon as there is room.
                        Instant::now() + if more { Duration::ZERO } else { HOLD }
                    }
                    Err(error) => Instant::now() + backoff.failed(&self.shared, &error),
                },
            }
        }
        self.finish().await;
    }

    /// Takes and starts as many hooks as there is room for. Returns whether more are owed.
    async fn take(&mut self) -> Result<bool, BrokerError> {
        let queues = self.shared.queues.now();
        let mut more = false;
        // Each time another queue comes first, so that none starves.
        let first = rand::random_range(0..queues.len().max(1));
        for served in queues[first..].iter().chain(&queues[..first]) {
            let room = self.slots.available_permits();
            if room == 0 {
                return Ok(true);
            }
            let (queue, kinds) = (&served.queue, self.shared.routes.hooked_kinds());
            let taken = take_hooks(&self.connections.pool, queue, room, HOLD, kinds).await?;
            more |= taken.more;
            report::hooks_dropped(&self.shared, queue, &taken.dropped);
            for hook in taken.hooks {
                self.start(queue, hook);
            }
        }
        Ok(more)
    }

    fn start(&mut self, queue: &Queue, hook: TakenHook) {
        let Ok(slot) = self.slots.clone().try_acquire_owned() else {
            // Only this component takes slots, and no more hooks than it has. The hold would run out.
            return;
        };
        let slot = Arc::new(slot);
        let held = Held {
            queue: queue.clone(),
            id: hook.id.clone(),
            not_before: hook.not_before.clone(),
            slot: Arc::downgrade(&slot),
        };
        let run = hook_run::run(self.shared.clone(), queue.clone(), hook, Box::new(slot));
        self.held.insert(self.running.spawn(run).id(), held);
    }

    /// What is to become of a hook that has ended. One that was cut off is owed at once, unless its
    /// thread still runs: then its hold runs out.
    fn release(&mut self, ended: Ended) -> Option<(Held, HookEnd)> {
        match ended {
            Ok((id, end)) => Some((self.held.remove(&id)?, end)),
            Err(cut) => {
                let held = self.held.remove(&cut.id())?;
                let still_runs = held.slot.strong_count() > 0;
                (!still_runs).then_some((held, HookEnd::Back))
            }
        }
    }

    async fn tell(&self, queue: &Queue, ends: &[(&Held, HookEnd)]) -> Result<(), BrokerError> {
        let told = ends
            .iter()
            .map(|(held, end)| (&*held.id, &*held.not_before, *end));
        end_hooks(&self.connections.pool, queue, told).await?;
        let dropped = ends.iter().filter(|(_, end)| *end == HookEnd::Dropped);
        let dropped: Vec<_> = dropped.map(|(held, _)| held.dropped()).collect();
        report::hooks_dropped(&self.shared, queue, &dropped);
        Ok(())
    }

    /// Gives the hooks that run a little more time, cuts off the others, and tells Redis.
    async fn finish(mut self) {
        let (until, mut ends) = (Instant::now() + HOOK_GRACE, Vec::new());
        while let Ok(Some(ended)) = timeout_at(until, self.running.join_next_with_id()).await {
            ends.extend(self.release(ended));
        }
        let cut = self.held.len();
        if cut > 0 {
            self.running.abort_all();
            let until = Instant::now() + CUT;
            while let Ok(Some(ended)) = timeout_at(until, self.running.join_next_with_id()).await {
                ends.extend(self.release(ended));
            }
            self.shared.counters.hooks_cut.add(cut);
            tracing::warn!(
                server.id = &*self.shared.id,
                cut,
                "cut dead-letter hooks off, because the server stops; they are owed as before"
            );
        }
        let mut by_queue: HashMap<&Queue, Vec<_>> = HashMap::new();
        for (held, end) in &ends {
            by_queue.entry(&held.queue).or_default().push((held, *end));
        }
        for (queue, ends) in by_queue {
            if let Err(error) = self.tell(queue, &ends).await {
                tracing::debug!(
                    error = &error as &dyn std::error::Error,
                    "could not tell Redis how dead-letter hooks ended; their holds run out"
                );
                return;
            }
        }
    }
}
