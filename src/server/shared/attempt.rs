use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crate::broker::{LeasedId, Queue, Record};
use crate::router::{CancelReason, Cancellation};
use crate::server::observe::task_name::TaskName;

/// How much longer than its time limit and grace an attempt's lease is extended: time to be settled.
const SETTLE_TIME: Duration = Duration::from_secs(5);

/// One attempt of a task, under a lease of this server. All who have to do with it share this: who
/// runs its handler, who extends its lease, who cancels it and who settles it.
pub(crate) struct Attempt {
    /// Names it in this process.
    pub(crate) number: u64,
    pub(crate) queue: Queue,
    pub(crate) leased: LeasedId,
    /// The number of its lease.
    pub(crate) lease: u64,
    /// Without payload and headers, which its handler has.
    pub(crate) record: Record,
    pub(crate) started: Instant,
    pub(crate) limit: Option<Limit>,
    pub(crate) cancellation: Cancellation,
    settling: AtomicBool,
}

/// When an attempt must end: at its timeout or at the task's deadline.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Limit {
    pub(crate) at: Instant,
    pub(crate) after: Duration,
    pub(crate) reason: CancelReason,
    /// From then on its lease is no longer extended, unless it is being settled: the handler ignores
    /// its cancellation.
    extend_until: Option<Instant>,
}

impl Attempt {
    pub(crate) fn new(
        number: u64,
        queue: &Queue,
        leased: LeasedId,
        lease: u64,
        record: Record,
        limit: Option<Limit>,
        started: Instant,
    ) -> Self {
        Self {
            number,
            queue: queue.clone(),
            leased,
            lease,
            record,
            started,
            limit,
            cancellation: Cancellation::new(),
            settling: AtomicBool::new(false),
        }
    }

    /// Notes that its handler has ended: what is left is to tell Redis.
    pub(crate) fn settles(&self) {
        self.settling.store(true, Ordering::Relaxed);
    }

    pub(crate) fn is_settling(&self) -> bool {
        self.settling.load(Ordering::Relaxed)
    }

    /// Whether its lease is to be extended now.
    pub(crate) fn needs_lease(&self, now: Instant) -> bool {
        let until = self.limit.and_then(|limit| limit.extend_until);
        self.is_settling() || until.is_none_or(|until| until > now)
    }

    pub(crate) fn name(&self) -> TaskName<'_> {
        TaskName {
            id: &self.leased.id,
            kind: &self.record.kind,
            queue: &self.queue,
            attempt: Some(u64::from(self.record.retried) + 1),
        }
    }
}

impl Limit {
    /// `now` is Redis' time in ms at the claim; `grace` is what a cancelled handler has.
    pub(crate) fn of(record: &Record, started: Instant, now: u64, grace: Duration) -> Option<Self> {
        let timeout = record.timeout.map(|after| (after, CancelReason::Timeout));
        let deadline = record
            .deadline
            .map(|at| Duration::from_millis(at.saturating_sub(now)));
        let deadline = deadline.map(|after| (after, CancelReason::Deadline));
        let (after, reason) = timeout
            .into_iter()
            .chain(deadline)
            .min_by_key(|(after, _)| *after)?;
        let at = started.checked_add(after)?;
        Some(Self {
            at,
            after,
            reason,
            extend_until: at.checked_add(grace + SETTLE_TIME),
        })
    }
}
