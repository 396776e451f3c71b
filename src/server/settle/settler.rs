use std::sync::Arc;

use futures::future::join_all;
use futures::stream::{FuturesUnordered, StreamExt};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::broker::{
    Archival, BrokerError, Completion, Deferral, Fault, Link, Queue, Releasal, Retrial, Settled,
};
use crate::defaults::{SCRIPT_BYTES, SCRIPT_TASKS};
use crate::server::Event;
use crate::server::backoff::Backoff;
use crate::server::run::running::RunNumber;
use crate::server::settle::outbox::Opened;
use crate::server::settle::settlement::{End, Ending, Settlement};
use crate::server::setup::connections::Connections;
use crate::server::shared::Shared;

/// How often a settlement that Redis refuses for good is tried, before its lease is left to run out.
const REFUSALS: u32 = 5;

/// Tells Redis how runs ended: what ends in a queue while a call for it is on its way goes together in
/// the next one. A settlement is sent again until Redis answers for it; the other queues' do not wait.
pub(crate) struct Settler {
    pub(crate) shared: Arc<Shared>,
    pub(crate) connections: Arc<Connections>,
    pub(crate) opened: mpsc::UnboundedReceiver<Opened>,
    /// Ends it once everything that was sent before is settled.
    pub(crate) close: CancellationToken,
}

impl Settler {
    pub(crate) async fn run(self) {
        let Self {
            shared,
            connections,
            mut opened,
            close,
        } = self;
        let mut queues = FuturesUnordered::new();
        loop {
            tokio::select! {
                biased;
                Some((queue, settlements)) = opened.recv() => {
                    queues.push(settle_queue(&shared, &connections.settle, &close, queue, settlements));
                }
                Some(()) = queues.next() => {}
                () = close.cancelled() => break,
            }
        }
        while queues.next().await.is_some() {}
    }
}

/// Settles for one queue until its last run has ended or it is told to end.
async fn settle_queue(
    shared: &Shared,
    link: &Link,
    close: &CancellationToken,
    queue: Queue,
    mut settlements: mpsc::Receiver<Settlement>,
) {
    let mut batch = Vec::new();
    loop {
        tokio::select! {
            biased;
            () = close.cancelled(), if !settlements.is_closed() => settlements.close(),
            n = settlements.recv_many(&mut batch, SCRIPT_TASKS) => {
                if n == 0 {
                    return;
                }
                Group::new(batch.drain(..)).settle(shared, link, &queue).await;
            }
        }
    }
}

/// Settlements of one queue: one script call for each list that is not empty.
#[derive(Default)]
struct Group {
    complete: Batch<Completion>,
    retry: Batch<Retrial>,
    archive: Batch<Archival>,
    defer: Batch<Deferral>,
    release: Batch<Releasal>,
}

struct Batch<T> {
    runs: Vec<RunNumber>,
    tasks: Vec<T>,
}

impl<T> Default for Batch<T> {
    fn default() -> Self {
        Self {
            runs: Vec::new(),
            tasks: Vec::new(),
        }
    }
}

impl<T> Batch<T> {
    fn push(&mut self, run: RunNumber, task: T) {
        self.runs.push(run);
        self.tasks.push(task);
    }
}

impl<T: Ending> Batch<T> {
    /// Cut so that one script call carries no more tasks and bytes than it may.
    fn parts(self) -> Vec<Self> {
        let bytes = self.tasks.iter().map(T::bytes).sum::<usize>();
        if self.tasks.len() <= T::AT_ONCE && bytes <= SCRIPT_BYTES {
            return vec![self];
        }
        let (mut parts, mut bytes) = (Vec::<Self>::new(), 0);
        for (run, task) in self.runs.into_iter().zip(self.tasks) {
            let more = task.bytes();
            match parts.last_mut() {
                Some(part) if part.tasks.len() < T::AT_ONCE && bytes + more <= SCRIPT_BYTES => {
                    bytes += more;
                    part.push(run, task);
                }
                _ => {
                    let mut part = Self::default();
                    bytes = more;
                    part.push(run, task);
                    parts.push(part);
                }
            }
        }
        parts
    }
}

impl Group {
    fn new(settlements: impl Iterator<Item = Settlement>) -> Self {
        let mut group = Self::default();
        for Settlement { run, end } in settlements {
            match end {
                End::Complete(task) => group.complete.push(run, task),
                End::Retry(task) => group.retry.push(run, task),
                End::Archive(task) => group.archive.push(run, task),
                End::Defer(task) => group.defer.push(run, task),
                End::Release(task) => group.release.push(run, task),
            }
        }
        group
    }

    async fn settle(self, shared: &Shared, link: &Link, queue: &Queue) {
        tokio::join!(
            settle(shared, link, queue, self.complete),
            settle(shared, link, queue, self.retry),
            settle(shared, link, queue, self.archive),
            settle(shared, link, queue, self.defer),
            settle(shared, link, queue, self.release),
        );
    }
}

async fn settle<T: Ending>(shared: &Shared, link: &Link, queue: &Queue, batch: Batch<T>) {
    for part in batch.parts() {
        settle_part(shared, link, queue, part).await;
    }
}

/// Sends one batch until it is answered; when Redis refuses it, one by one, because one of its tasks
/// may spoil it for the others.
async fn settle_part<T: Ending>(shared: &Shared, link: &Link, queue: &Queue, batch: Batch<T>) {
    if batch.tasks.is_empty() || send(shared, link, queue, &batch, 1).await.is_ok() {
        return;
    }
    let singles = batch.runs.into_iter().zip(batch.tasks);
    // All at once: where Redis refuses every one, the queue's next settlements wait for this.
    join_all(singles.map(|(run, task)| async move {
        let single = Batch {
            runs: vec![run],
            tasks: vec![task],
        };
        if let Err(error) = send(shared, link, queue, &single, REFUSALS).await {
            give_up(shared, queue, &single, &error);
        }
    }))
    .await;
}

/// Sends a batch until Redis answers for it, or has refused it for good `refusals` times.
async fn send<T: Ending>(
    shared: &Shared,
    link: &Link,
    queue: &Queue,
    batch: &Batch<T>,
    refusals: u32,
) -> Result<(), BrokerError> {
    let mut backoff = Backoff::new("settler");
    let mut repeats = false;
    let mut refused = 0;
    loop {
        match T::send(link, queue, &batch.tasks).await {
            Ok(answers) => {
                backoff.worked(shared);
                answered(shared, queue, batch, &answers, repeats);
                return Ok(());
            }
            Err(error) => {
                repeats |= error.outcome_unknown();
                refused += u32::from(error.fault() == Fault::Permanent);
                if refused == refusals {
                    return Err(error);
                }
                backoff.wait(shared, &error).await;
            }
        }
    }
}

fn answered<T: Ending>(
    shared: &Shared,
    queue: &Queue,
    batch: &Batch<T>,
    answers: &[Settled],
    repeats: bool,
) {
    shared.running.remove(batch.runs.iter().copied());
    if T::MAY_OWE_HOOK {
        shared.hooks_owed.notify();
    }
    for (task, answer) in batch.tasks.iter().zip(answers) {
        match answer {
            Settled::Done => {
                T::counter(&shared.counters).add(1);
                if let Some(delay) = task.due_in() {
                    shared.due.hint(queue, delay);
                }
            }
            // The call before this one did it; only its answer was lost.
            Settled::Gone if repeats => T::counter(&shared.counters).add(1),
            Settled::Gone | Settled::Stale | Settled::Cancelled => {
                if let Some(suppressed) = shared.log_limit.pass() {
                    tracing::warn!(
                        task.id = &*task.task().id,
                        queue = &*queue.name,
                        suppressed,
                        "the task's lease is not ours any more: how it ended is dropped"
                    );
                }
                refused(shared, queue, task);
            }
        }
    }
}

/// Leaves tasks that cannot be settled to the recoverers: their leases run out.
fn give_up<T: Ending>(shared: &Shared, queue: &Queue, batch: &Batch<T>, error: &BrokerError) {
    shared.running.remove(batch.runs.iter().copied());
    for task in &batch.tasks {
        if let Some(suppressed) = shared.log_limit.pass() {
            tracing::error!(
                task.id = &*task.task().id,
                queue = &*queue.name,
                error = error as &dyn std::error::Error,
                suppressed,
                "Redis refuses to settle the task; its lease will run out"
            );
        }
        refused(shared, queue, task);
    }
}

fn refused<T: Ending>(shared: &Shared, queue: &Queue, task: &T) {
    shared.counters.settles_refused.add(1);
    shared.observe(|| Event::SettleRefused {
        id: task.task().id.to_string(),
        queue: queue.name.to_string(),
    });
}
