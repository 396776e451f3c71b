use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use parking_lot::Mutex;

use crate::broker::{LeaseHolder, Queue};
use crate::router::CancelReason;
use crate::server::shared::attempt::Attempt;

/// The attempts whose leases this server holds: from the claim until Redis has settled them, or until
/// the lease is lost.
#[derive(Default)]
pub(crate) struct Running {
    by_number: Mutex<HashMap<u64, Arc<Attempt>>>,
    next: AtomicU64,
}

impl Running {
    /// The number of a new attempt.
    pub(crate) fn next_number(&self) -> u64 {
        self.next.fetch_add(1, Ordering::Relaxed)
    }

    pub(crate) fn add(&self, attempts: impl Iterator<Item = Arc<Attempt>>) {
        let attempts = attempts.map(|attempt| (attempt.number, attempt));
        self.by_number.lock().extend(attempts);
    }

    pub(crate) fn remove<'a>(&self, attempts: impl Iterator<Item = &'a Attempt>) {
        let mut by_number = self.by_number.lock();
        for attempt in attempts {
            by_number.remove(&attempt.number);
        }
    }

    /// Cancels an attempt whose lease is lost, and forgets it. One that is being settled is left to
    /// that. Returns whether it was cancelled.
    pub(crate) fn lost(&self, attempt: &Attempt) -> bool {
        if attempt.is_settling() || self.by_number.lock().remove(&attempt.number).is_none() {
            return false;
        }
        attempt.cancellation.cancel(CancelReason::LeaseLost);
        true
    }

    /// Cancels the attempt of a task under a lease.
    pub(crate) fn cancel_leased(&self, id: &str, holder: &LeaseHolder, reason: CancelReason) {
        let by_number = self.by_number.lock();
        let mut attempts = by_number.values();
        if let Some(attempt) =
            attempts.find(|it| *it.leased.id == *id && it.leased.holder == *holder)
        {
            attempt.cancellation.cancel(reason);
        }
    }

    /// The attempts whose leases are to be extended now, by queue.
    pub(crate) fn to_extend(&self) -> HashMap<Queue, Vec<Arc<Attempt>>> {
        let now = Instant::now();
        let mut by_queue: HashMap<Queue, Vec<_>> = HashMap::new();
        for attempt in self.by_number.lock().values() {
            if attempt.needs_lease(now) {
                let of_queue = by_queue.entry(attempt.queue.clone()).or_default();
                of_queue.push(attempt.clone());
            }
        }
        by_queue
    }

    /// Whether it has attempts of a queue's tasks.
    pub(crate) fn has(&self, queue: &Queue) -> bool {
        let by_number = self.by_number.lock();
        by_number.values().any(|attempt| attempt.queue == *queue)
    }

    /// Cancels every handler that still runs.
    pub(crate) fn cancel_all(&self, reason: CancelReason) {
        for attempt in self.by_number.lock().values() {
            if !attempt.is_settling() {
                attempt.cancellation.cancel(reason);
            }
        }
    }

    pub(crate) fn list(&self) -> Vec<Arc<Attempt>> {
        self.by_number.lock().values().cloned().collect()
    }

    pub(crate) fn len(&self) -> usize {
        self.by_number.lock().len()
    }
}
