use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use crate::broker::{LeaseHolder, LeasedId, Queue};
use crate::router::{CancelReason, Cancellation};

/// The tasks whose leases this server holds: from the claim until the settle is answered, or until
/// the lease is lost.
#[derive(Default)]
pub(crate) struct Running(Mutex<Tasks>);

#[derive(Default)]
struct Tasks {
    by_number: HashMap<RunNumber, Run>,
    next: u64,
}

/// Names one run of a task in this process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct RunNumber(u64);

/// One run of a task.
#[derive(Clone)]
pub(crate) struct Run {
    pub(crate) queue: Queue,
    pub(crate) leased: LeasedId,
    pub(crate) kind: Arc<str>,
    pub(crate) cancellation: Cancellation,
    /// After this its lease is no longer extended, unless it is being settled: the handler ignored its
    /// timeout.
    pub(crate) extend_until: Option<Instant>,
    pub(crate) started: Instant,
    /// The handler has ended; what is left is to tell Redis.
    pub(crate) settling: bool,
}

impl Running {
    fn tasks(&self) -> MutexGuard<'_, Tasks> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds the runs of one claim.
    pub(crate) fn add(&self, runs: impl Iterator<Item = Run>) -> Vec<RunNumber> {
        let mut tasks = self.tasks();
        runs.map(|run| {
            let number = RunNumber(tasks.next);
            tasks.next += 1;
            tasks.by_number.insert(number, run);
            number
        })
        .collect()
    }

    pub(crate) fn settling(&self, number: RunNumber) {
        if let Some(run) = self.tasks().by_number.get_mut(&number) {
            run.settling = true;
        }
    }

    pub(crate) fn remove(&self, numbers: impl Iterator<Item = RunNumber>) {
        let mut tasks = self.tasks();
        for number in numbers {
            tasks.by_number.remove(&number);
        }
    }

    /// Cancels a run whose lease is lost and forgets it. A run that is being settled is left to that.
    pub(crate) fn lost(&self, number: RunNumber) -> Option<Run> {
        let mut tasks = self.tasks();
        if tasks.by_number.get(&number)?.settling {
            return None;
        }
        let run = tasks.by_number.remove(&number)?;
        run.cancellation.cancel(CancelReason::LeaseLost);
        Some(run)
    }

    /// Cancels a run, which stays this server's.
    pub(crate) fn cancel(&self, number: RunNumber, reason: CancelReason) {
        if let Some(run) = self.tasks().by_number.get(&number) {
            run.cancellation.cancel(reason);
        }
    }

    /// Cancels the run of a task under a lease.
    pub(crate) fn cancel_leased(&self, id: &str, holder: &LeaseHolder, reason: CancelReason) {
        let tasks = self.tasks();
        let mut runs = tasks.by_number.values();
        if let Some(run) = runs.find(|run| *run.leased.id == *id && run.leased.holder == *holder) {
            run.cancellation.cancel(reason);
        }
    }

    /// The runs whose leases are to be extended now, by queue.
    pub(crate) fn to_extend(&self) -> HashMap<Queue, Vec<(RunNumber, LeasedId)>> {
        let now = Instant::now();
        let mut by_queue: HashMap<Queue, Vec<_>> = HashMap::new();
        for (number, run) in &self.tasks().by_number {
            if run.settling || run.extend_until.is_none_or(|until| until > now) {
                by_queue
                    .entry(run.queue.clone())
                    .or_default()
                    .push((*number, run.leased.clone()));
            }
        }
        by_queue
    }

    /// Whether it has runs of a queue.
    pub(crate) fn has(&self, queue: &Queue) -> bool {
        let tasks = self.tasks();
        tasks.by_number.values().any(|run| run.queue == *queue)
    }

    /// Cancels every handler that still runs.
    pub(crate) fn cancel_all(&self, reason: CancelReason) {
        for run in self.tasks().by_number.values().filter(|run| !run.settling) {
            run.cancellation.cancel(reason);
        }
    }

    pub(crate) fn list(&self) -> Vec<Run> {
        self.tasks().by_number.values().cloned().collect()
    }

    pub(crate) fn len(&self) -> usize {
        self.tasks().by_number.len()
    }
}
