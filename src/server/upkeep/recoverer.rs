use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use crate::broker::{
    BrokerError, By, LostLease, Queue, Settled, Settlement, Tick, TickRequest, batches,
    queues_with_any, settle, tick,
};
use crate::server::observe::task_name::TaskName;
use crate::server::settle::{advice, decide, report};
use crate::server::shared::Shared;
use crate::server::shared::backoff::Backoff;
use crate::server::shared::connections::Connections;
use crate::server::shared::each_queue::EachQueue;

/// So few queues are looked at without asking first whether there is something to do.
const FEW: usize = 2;

/// Takes back the tasks of servers that died: every server runs one, and they may race.
pub(crate) struct Recoverer {
    shared: Arc<Shared>,
    connections: Arc<Connections>,
    looks: Mutex<HashMap<Queue, Look>>,
}

/// This server's last look at a queue.
struct Look {
    at: Instant,
    grace_left: Duration,
}

impl Recoverer {
    pub(crate) fn new(shared: Arc<Shared>, connections: Arc<Connections>) -> Self {
        Self {
            shared,
            connections,
            looks: Mutex::default(),
        }
    }

    pub(crate) async fn run(self) {
        let mut backoff = Backoff::new("recoverer");
        let mut each_queue = EachQueue::new("recoverer");
        loop {
            match self.scan(&mut each_queue).await {
                Ok(()) => {
                    backoff.worked(&self.shared);
                    tokio::time::sleep(self.pause()).await;
                }
                Err(error) => backoff.wait(&self.shared, &error).await,
            }
        }
    }

    /// Looks once at each queue, so that it can vouch for the time since, and then where there may be
    /// something to do: an idle queue has neither leases nor deadlines.
    async fn scan(&self, each_queue: &mut EachQueue) -> Result<(), BrokerError> {
        let served = self.shared.queues.now();
        let queues: Vec<_> = served.iter().map(|served| &served.queue).collect();
        let queues = match queues.len() {
            0..=FEW => queues,
            _ => self.worth_a_look(queues).await?,
        };
        let recover = |queue| self.recover_all(queue);
        each_queue.run(&self.shared, queues, recover).await
    }

    async fn worth_a_look<'a>(
        &self,
        queues: Vec<&'a Queue>,
    ) -> Result<Vec<&'a Queue>, BrokerError> {
        let redis = &self.connections.recover;
        let mut keys = vec!["active", "deadlines", "hooks"];
        if !self.shared.config.role.claims() {
            // Claims tell others when tasks are due.
            keys.extend(["scheduled", "retry"]);
        }
        let busy = queues_with_any(redis, &queues, &keys).await?;
        let looks = self.looks.lock();
        let queues = queues.into_iter().enumerate();
        let queues = queues.filter(|(place, queue)| {
            busy.binary_search(place).is_ok() || !looks.contains_key(*queue)
        });
        Ok(queues.map(|(_, queue)| queue).collect())
    }

    /// Until the next scan. What waits for the end of a grace has waited for long enough.
    fn pause(&self) -> Duration {
        let mut looks = self.looks.lock();
        let served = self.shared.queues.now();
        if looks.len() > served.len() {
            looks.retain(|known, _| served.iter().any(|served| served.queue == *known));
        }
        let graces = looks
            .values()
            .map(|look| look.grace_left.saturating_sub(look.at.elapsed()));
        let grace = graces.filter(|left| !left.is_zero()).min();
        // The jitter keeps many servers from scanning in step.
        let pause = self
            .shared
            .config
            .scan
            .mul_f64(rand::random_range(0.9..1.0));
        grace.map_or(pause, |left| left.min(pause))
    }

    /// In bounded steps, until one finds nothing to do.
    async fn recover_all(&self, queue: &Queue) -> Result<(), BrokerError> {
        loop {
            let found = self.look(queue).await?;
            if !self.recover(queue, found).await? {
                return Ok(());
            }
        }
    }

    async fn look(&self, queue: &Queue) -> Result<Tick, BrokerError> {
        let (config, witness) = (&self.shared.config, &self.shared.witness);
        let last = self.looks.lock().get(queue).map(|look| look.at);
        if last.is_none() {
            // What this recoverer archives in a queue that was just added is to owe its hook.
            let redis = &self.connections.recover;
            self.shared.register_hooks(redis, queue).await?;
        }
        let request = TickRequest {
            harmless: config.harmless_outage(),
            vouched: last.map_or(Duration::ZERO, |last| witness.vouches_since(last)),
            grace: config.grace(),
            skew: config.clock_skew,
        };
        let sent = Instant::now();
        let found = tick(&self.connections.recover, queue, request).await?;
        let look = Look {
            at: witness.answered(sent),
            grace_left: found.grace_left,
        };
        self.looks.lock().insert(queue.clone(), look);
        Ok(found)
    }

    /// Ends the leases that a look found to be lost. Returns whether there may be more to do.
    async fn recover(&self, queue: &Queue, found: Tick) -> Result<bool, BrokerError> {
        self.shared.malformed(&queue.name, &found.malformed);
        if !found.grace_left.is_zero() {
            tracing::debug!(queue = &*queue.name, grace = ?found.grace_left, "after an outage no lease is taken yet");
        }
        // Claims tell it too, but a server whose slots are all taken does not claim.
        if let Some(due_in) = found.next_due {
            self.shared.due.hint(queue, due_in);
        }
        if found.hook_owed {
            self.shared.hooks_owed.notify();
        }
        let recovered = self.settle(queue, &found.lost).await?;
        if recovered > 0 {
            tracing::warn!(
                queue = &*queue.name,
                recovered,
                server.id = &*self.shared.id,
                "took back lost leases"
            );
        }
        self.shared.counters.recovered.add(recovered);
        // Not by how many were lost, because broken records, which are gone now, took their places.
        // Another recoverer may have been faster: then this one has nothing more to look for either.
        Ok(recovered > 0 || !found.malformed.is_empty())
    }

    /// Ends the leases that are lost. Returns how many this recoverer ended: another may be faster.
    async fn settle(&self, queue: &Queue, lost: &[LostLease]) -> Result<usize, BrokerError> {
        let shared = &self.shared;
        let by = By::Recoverer {
            skew: shared.config.clock_skew,
        };
        let settlements = lost.iter().map(|lost| (lost, self.settlement(queue, lost)));
        let mut recovered = 0;
        for batch in batches(settlements, |(_, settlement)| &settlement.how) {
            let settlements: Vec<_> = batch.iter().map(|(_, settlement)| settlement).collect();
            let answers = settle(&self.connections.recover, queue, by, &settlements).await?;
            for ((lost, settlement), answer) in batch.iter().zip(answers) {
                if let Settled::Done(became) = answer {
                    recovered += 1;
                    report::settled(shared, name(queue, lost), &settlement.how, became);
                }
            }
        }
        Ok(recovered)
    }

    fn settlement(&self, queue: &Queue, lost: &LostLease) -> Settlement {
        let in_a_row = lost.lost_before.saturating_add(1);
        let span = name(queue, lost).span(&self.shared.id);
        let advice = span.in_scope(|| advice::on_lost_lease(&self.shared, queue, lost));
        let max_in_a_row = self.shared.config.max_lost;
        Settlement {
            task: lost.task.clone(),
            how: decide::after_lost_lease(&lost.record, in_a_row, max_in_a_row, advice),
        }
    }
}

fn name<'a>(queue: &'a Queue, lost: &'a LostLease) -> TaskName<'a> {
    TaskName {
        id: &lost.task.id,
        kind: &lost.record.kind,
        queue,
        attempt: Some(u64::from(lost.record.retried) + 1),
    }
}
