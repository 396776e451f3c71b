use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::OwnedSemaphorePermit;
use tokio::sync::mpsc;
use tokio_util::task::TaskTracker;

use crate::broker::{Claim, Queue};
use crate::router::Cancellation;
use crate::server::run::attempt::{Attempt, Limit};
use crate::server::run::handler_slot::HandlerSlot;
use crate::server::run::running::{Run, RunNumber};
use crate::server::settle::outbox::Outbox;
use crate::server::settle::settlement::Settlement;
use crate::server::setup::connections::Connections;
use crate::server::shared::Shared;

/// How much longer than its time limit and grace a run's lease is extended: time to be settled.
const SETTLE_TIME: Duration = Duration::from_secs(5);

/// Runs handlers: each claimed task gets a task of the runtime, which ends in a settlement.
pub(crate) struct Executor {
    shared: Arc<Shared>,
    connections: Arc<Connections>,
    tracker: TaskTracker,
    outbox: Outbox,
}

impl Executor {
    pub(crate) fn new(shared: Arc<Shared>, connections: Arc<Connections>, outbox: Outbox) -> Self {
        Self {
            shared,
            connections,
            tracker: TaskTracker::new(),
            outbox,
        }
    }

    /// To wait for all runs.
    pub(crate) fn tracker(&self) -> TaskTracker {
        self.tracker.clone()
    }

    /// Starts what a claim brought. `permit` holds a slot for each of its tasks.
    pub(crate) fn start(&self, queue: &Queue, claim: Claim, permit: &mut OwnedSemaphorePermit) {
        let shared = &self.shared;
        shared.counters.claimed.add(claim.tasks.len());
        shared.malformed(&queue.name, &claim.malformed);
        let started = Instant::now();
        let grace = shared.config.cancel_grace + SETTLE_TIME;
        let attempts: Vec<_> = claim
            .tasks
            .into_iter()
            .map(|claimed| Attempt {
                limit: claimed
                    .record
                    .as_ref()
                    .ok()
                    .and_then(|r| Limit::of(r, started, claim.now)),
                kind: claimed
                    .record
                    .as_ref()
                    .map_or("", |record| &record.kind)
                    .into(),
                leased: claimed.leased,
                lease: claim.number,
                record: claimed.record,
                queue: queue.clone(),
                cancellation: Cancellation::new(),
                started,
            })
            .collect();
        let runs = attempts.iter().map(|attempt| Run {
            queue: queue.clone(),
            leased: attempt.leased.clone(),
            kind: attempt.kind.clone(),
            cancellation: attempt.cancellation.clone(),
            extend_until: attempt
                .limit
                .as_ref()
                .and_then(|limit| limit.at.checked_add(grace)),
            started,
            settling: false,
        });
        let numbers = shared.running.add(runs);
        let settlements = self.outbox.of(queue);
        for (attempt, number) in attempts.into_iter().zip(numbers) {
            let place = Arc::new(HandlerSlot {
                // The claim asked for no more tasks than there are permits.
                _permit: permit.split(1),
                connections: self.connections.clone(),
                queue: queue.clone(),
                leased: attempt.leased.clone(),
            });
            let run = run(shared.clone(), settlements.clone(), attempt, number, place);
            // Boxed, because the runtime moves what it is given more than once, and this is large.
            self.tracker.spawn(Box::pin(run));
        }
    }
}

async fn run(
    shared: Arc<Shared>,
    settlements: mpsc::Sender<Settlement>,
    attempt: Attempt,
    number: RunNumber,
    place: Arc<HandlerSlot>,
) {
    let Some(end) = attempt.run(&shared, &place).await else {
        // Given up without a word to Redis: its lease is lost, or runs out.
        return;
    };
    shared.running.settling(number);
    let settlement = Settlement { run: number, end };
    // Bounded: while Redis takes no settlements, slots stay taken. The settler outlives all runs
    // unless the server was dropped; then the lease runs out.
    let _ = settlements.send(settlement).await;
    drop(place);
}
