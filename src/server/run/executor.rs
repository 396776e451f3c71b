use std::mem::take;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::{OwnedSemaphorePermit, mpsc};
use tokio::time::sleep;
use tokio_util::task::TaskTracker;

use crate::broker::{Claim, ClaimedTask, How, Malformed, Queue, Record, Settlement};
use crate::server::run::handler::{self, HandlerSlot};
use crate::server::shared::attempt::{Attempt, Limit};

use crate::server::settle::decide;
use crate::server::settle::settler::{EndedAttempt, SettleChannels};
use crate::server::shared::Shared;
use crate::server::shared::connections::Connections;

/// Runs handlers: each claimed task gets a task of the runtime, which ends in a settlement.
pub(crate) struct Executor {
    shared: Arc<Shared>,
    connections: Arc<Connections>,
    tracker: TaskTracker,
    settle: SettleChannels,
}

/// How long a slot rests for whose blocking handler the system had no thread.
const OUT_OF_THREADS: Duration = Duration::from_secs(1);

/// What a handler gets of a record: payload and headers.
type Work = Result<(Vec<u8>, Vec<(String, String)>), Malformed>;

impl Executor {
    pub(crate) fn new(
        shared: Arc<Shared>,
        connections: Arc<Connections>,
        settle: SettleChannels,
    ) -> Self {
        Self {
            shared,
            connections,
            tracker: TaskTracker::new(),
            settle,
        }
    }

    /// To wait for all handlers.
    pub(crate) fn tracker(&self) -> TaskTracker {
        self.tracker.clone()
    }

    /// Starts what a claim brought. `permit` holds a slot for each of its tasks.
    pub(crate) fn start(&self, queue: &Queue, claim: Claim, permit: &mut OwnedSemaphorePermit) {
        let (started, now, lease) = (Instant::now(), claim.now, claim.number);
        let tasks = claim.tasks.into_iter();
        let attempts: Vec<_> = tasks
            .map(|task| self.attempt(queue, task, lease, started, now))
            .collect();
        let running = attempts.iter().map(|(attempt, _)| attempt.clone());
        self.shared.running.add(running);
        let settle = self.settle.of(queue);
        for (attempt, work) in attempts {
            let slot = Arc::new(HandlerSlot {
                // The claim asked for no more tasks than there are permits.
                _permit: permit.split(1),
                connections: self.connections.clone(),
                attempt,
            });
            let run = run(self.shared.clone(), settle.clone(), slot, work);
            // Boxed, because the runtime moves what it is given more than once, and this is large.
            self.tracker.spawn(Box::pin(run));
        }
    }

    fn attempt(
        &self,
        queue: &Queue,
        ClaimedTask { leased, record }: ClaimedTask,
        lease: u64,
        started: Instant,
        now: u64,
    ) -> (Arc<Attempt>, Work) {
        let (record, work) = match record {
            Ok(mut record) => {
                let work = (take(&mut record.payload), take(&mut record.headers));
                (record, Ok(work))
            }
            Err(malformed) => (Record::of_kind(String::new()), Err(malformed)),
        };
        let limit = Limit::of(&record, started, now, self.shared.config.cancel_grace);
        let number = self.shared.running.next_number();
        let attempt = Attempt::new(number, queue, leased, lease, record, limit, started);
        (Arc::new(attempt), work)
    }
}

async fn run(
    shared: Arc<Shared>,
    settle: mpsc::Sender<EndedAttempt>,
    slot: Arc<HandlerSlot>,
    work: Work,
) {
    let how: Option<How> = match work {
        Ok((payload, headers)) => handler::run(&shared, &slot, payload, headers).await,
        Err(malformed) => Some(decide::malformed(&malformed)),
    };
    let Some(how) = how else {
        // Given up without a word to Redis: its lease is lost, or runs out.
        return;
    };
    let attempt = slot.attempt.clone();
    attempt.settles();
    let task = attempt.leased.clone();
    let settlement = Settlement { task, how };
    let not_started = settlement.how == How::Release { started: false };
    // Bounded: while Redis takes no settlements, slots stay taken. The settler outlives all handlers
    // unless the server was dropped; then the lease runs out.
    let _ = settle
        .send(EndedAttempt {
            attempt,
            settlement,
        })
        .await;
    if not_started {
        // The system is out of threads, or of memory. So this slot claims nothing for a while.
        shared.unless_quiet(sleep(OUT_OF_THREADS)).await;
    }
    drop(slot);
}
