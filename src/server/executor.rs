use std::any::Any;
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use tokio::sync::OwnedSemaphorePermit;
use tokio::sync::mpsc;
use tokio_util::task::TaskTracker;
use tracing::Instrument;

use super::Event;
use super::decide::{self, Tried};
use super::running::{Run, RunNumber};
use super::settlement::{End, Settlement};
use super::shared::Shared;
use crate::broker::{
    Archival, ArchiveReason, Claim, ClaimedTask, LeasedId, Malformed, Queue, Record, Releasal,
};
use crate::router::{CancelReason, Cancellation, Delivery, Failure, Outcome, TaskContext};

/// How much longer than its timeout and grace a run's lease is extended: time to be settled.
const SETTLE_TIME: Duration = Duration::from_secs(5);

/// Runs handlers: each claimed task gets a task of the runtime, which ends in a settlement.
pub(super) struct Executor {
    shared: Arc<Shared>,
    tracker: TaskTracker,
    settlements: mpsc::Sender<Settlement>,
}

impl Executor {
    pub(super) fn new(shared: Arc<Shared>, settlements: mpsc::Sender<Settlement>) -> Self {
        Self {
            shared,
            tracker: TaskTracker::new(),
            settlements,
        }
    }

    /// To wait for all runs.
    pub(super) fn tracker(&self) -> TaskTracker {
        self.tracker.clone()
    }

    /// Starts what a claim brought. `permit` holds a slot for each of its tasks.
    pub(super) fn start(&self, queue: &Queue, claim: Claim, permit: &mut OwnedSemaphorePermit) {
        let shared = &self.shared;
        shared.counters.claimed.add(claim.tasks.len());
        shared.malformed(&queue.name, &claim.malformed);
        let started = Instant::now();
        let jobs: Vec<Job> = claim
            .tasks
            .into_iter()
            .map(|ClaimedTask { leased, record }| Job::new(leased, record, started))
            .collect();
        let grace = shared.config.cancel_grace + SETTLE_TIME;
        let runs = jobs.iter().map(|job| Run {
            queue: queue.clone(),
            leased: job.leased.clone(),
            kind: job.kind.clone(),
            cancellation: job.cancellation.clone(),
            extend_until: job.deadline.map(|deadline| deadline + grace),
            started,
            settling: false,
        });
        let numbers = shared.running.add(runs);
        for (job, number) in jobs.into_iter().zip(numbers) {
            // The claim asked for no more tasks than there are permits.
            let slot: Arc<Slot> = Arc::new(Slot(permit.split(1)));
            self.tracker.spawn(run(
                shared.clone(),
                self.settlements.clone(),
                queue.clone(),
                job,
                claim.number,
                number,
                slot,
            ));
        }
    }
}

/// A handler's place; a blocking handler that was given up still holds it.
struct Slot(#[expect(dead_code, reason = "held, not read")] Option<OwnedSemaphorePermit>);

struct Job {
    leased: LeasedId,
    kind: Arc<str>,
    record: Result<Record, Malformed>,
    cancellation: Cancellation,
    deadline: Option<Instant>,
}

impl Job {
    fn new(leased: LeasedId, record: Result<Record, Malformed>, started: Instant) -> Self {
        let (kind, timeout) = match &record {
            Ok(record) => (record.kind.as_str(), record.timeout),
            Err(_) => ("", None),
        };
        Self {
            leased,
            kind: kind.into(),
            cancellation: Cancellation::new(),
            deadline: timeout.and_then(|timeout| started.checked_add(timeout)),
            record,
        }
    }
}

async fn run(
    shared: Arc<Shared>,
    settlements: mpsc::Sender<Settlement>,
    queue: Queue,
    job: Job,
    lease: u64,
    number: RunNumber,
    slot: Arc<Slot>,
) {
    let Some(end) = attempt(&shared, &queue, job, lease, slot).await else {
        // Given up without a word to Redis: its lease is lost, or runs out.
        return;
    };
    shared.running.settling(number);
    let settlement = Settlement {
        run: number,
        queue,
        end,
    };
    // Bounded: while Redis takes no settlements, slots stay taken. The settler outlives all runs
    // unless the server was dropped; then the lease runs out.
    let _ = settlements.send(settlement).await;
}

/// One try, from the record to how it ends; `None`: there is nothing to settle.
async fn attempt(
    shared: &Arc<Shared>,
    queue: &Queue,
    job: Job,
    lease: u64,
    slot: Arc<Slot>,
) -> Option<End> {
    let leased = job.leased;
    let id = &leased.id;
    let record = match job.record {
        Ok(record) => record,
        Err(malformed) => {
            shared.malformed(&queue.name, &[id.to_string()]);
            return Some(End::Archive(Archival {
                task: leased,
                reason: ArchiveReason::Malformed,
                lost: None,
                error: malformed.to_string(),
            }));
        }
    };
    let tried = Tried {
        leased: &leased,
        kind: &job.kind,
        queue: &queue.name,
        retried: record.retried,
        max_retry: record.max_retry,
    };
    if !shared.routes.knows(&record.kind) {
        return Some(decide::unknown_kind(shared, &tried));
    }
    let slot: Arc<dyn Any + Send + Sync> = slot;
    let context = TaskContext::new(Delivery {
        id: id.to_string(),
        kind: record.kind,
        queue: queue.name.clone(),
        retried: record.retried,
        max_retry: record.max_retry,
        lease,
        server_id: shared.id.clone(),
        deadline: job.deadline,
        cancellation: job.cancellation.clone(),
        slot: Arc::downgrade(&slot),
    });
    let span = tracing::info_span!(
        "task",
        task.id = &**id,
        task.kind = &*job.kind,
        queue = &*queue.name,
        attempt = u64::from(record.retried) + 1,
        lease,
        server.id = &*shared.id,
    );
    let handler = shared
        .routes
        .dispatch(context, record.payload)
        .instrument(span);
    let ended = supervise(
        handler,
        &job.cancellation,
        job.deadline,
        shared.config.cancel_grace,
    )
    .await;
    let leaked = matches!(ended, Ended::GivenUp(_)) && Arc::strong_count(&slot) > 1;
    if leaked {
        watch_leak(shared, slot, &tried);
    }
    end(shared, &tried, ended, record.timeout, leaked)
}

/// How a handler came to its end.
enum Ended {
    /// It answered, perhaps after it was cancelled.
    Answered(Outcome, Option<CancelReason>),
    /// It did not answer within the grace after its cancellation.
    GivenUp(CancelReason),
}

/// Runs a handler until it answers, or until the grace after its timeout or cancellation is over.
async fn supervise(
    handler: impl Future<Output = Outcome>,
    cancellation: &Cancellation,
    deadline: Option<Instant>,
    grace: Duration,
) -> Ended {
    tokio::pin!(handler);
    let out_of_time = async {
        match deadline {
            Some(deadline) => tokio::time::sleep_until(deadline.into()).await,
            None => std::future::pending().await,
        }
    };
    tokio::select! {
        // The handler first: most end at their first poll, and then neither timer nor token is set up.
        biased;
        outcome = &mut handler => return Ended::Answered(outcome, None),
        () = cancellation.cancelled() => {}
        () = out_of_time => cancellation.cancel(CancelReason::Timeout),
    }
    let reason = cancellation.reason().unwrap_or(CancelReason::Requested);
    match tokio::time::timeout(grace, handler).await {
        Ok(outcome) => Ended::Answered(outcome, Some(reason)),
        Err(_) => Ended::GivenUp(reason),
    }
}

fn end(
    shared: &Shared,
    tried: &Tried<'_>,
    ended: Ended,
    timeout: Option<Duration>,
    leaked: bool,
) -> Option<End> {
    let released = || {
        End::Release(Releasal {
            task: tried.leased.clone(),
            started: true,
        })
    };
    let timed_out = || Outcome::Failed(Failure::timeout(timeout.unwrap_or_default()));
    match ended {
        // A handler that fails because the server stops has not failed: unless it gives a verdict of
        // its own, its task is handed back.
        Ended::Answered(Outcome::Failed(failure), Some(CancelReason::Shutdown))
            if failure.is_plain() =>
        {
            Some(released())
        }
        Ended::Answered(outcome, _) => Some(decide::after_outcome(shared, tried, outcome)),
        Ended::GivenUp(CancelReason::LeaseLost) => None,
        // Its blocking handler still runs: handing the task back would let it run twice at once.
        Ended::GivenUp(CancelReason::Shutdown) if leaked => None,
        Ended::GivenUp(CancelReason::Shutdown) => Some(released()),
        Ended::GivenUp(CancelReason::Timeout) => {
            Some(decide::after_outcome(shared, tried, timed_out()))
        }
        Ended::GivenUp(reason) => {
            let outcome = Outcome::Failed(Failure::cancelled(reason));
            Some(decide::after_outcome(shared, tried, outcome))
        }
    }
}

/// Counts a blocking handler that was given up, until it returns.
fn watch_leak(shared: &Arc<Shared>, slot: Arc<dyn Any + Send + Sync>, tried: &Tried<'_>) {
    shared.counters.leaked.add(1);
    tracing::error!(
        task.id = &*tried.leased.id,
        task.kind = tried.kind,
        "a handler ignores its cancellation; it keeps its slot until it returns"
    );
    shared.observe(&Event::HandlerLeaked {
        id: &tried.leased.id,
        kind: tried.kind,
    });
    let slot: Weak<dyn Any + Send + Sync> = Arc::downgrade(&slot);
    let shared = Arc::downgrade(shared);
    tokio::spawn(async move {
        while slot.strong_count() > 0 {
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        if let Some(shared) = shared.upgrade() {
            shared.counters.leaked.subtract(1);
        }
    });
}
