use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use parking_lot::Mutex;

/// Whether a server does its work.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Health {
    /// What is wrong; empty when all is well.
    pub problems: Vec<Problem>,
}

impl Health {
    /// Whether nothing is wrong.
    pub fn is_healthy(&self) -> bool {
        self.problems.is_empty()
    }
}

/// Something that keeps a server from its work.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Problem {
    /// No heartbeat has reached Redis for longer than two intervals: leases will be lost.
    #[error("no heartbeat has reached Redis for {0:?}")]
    NoHeartbeat(Duration),
    /// The claimer has not heard from Redis for over 5 s although it has free slots.
    #[error("the claimer has not heard from Redis for {0:?}")]
    NoClaim(Duration),
    /// The runtime that runs the handlers has not run for over 5 s.
    #[error("the runtime of the handlers has not run for {0:?}: a handler blocks it")]
    RuntimeBlocked(Duration),
    /// This many slots are held by handlers that ignore their cancellation.
    #[error("{0} slots are held by handlers that ignore their cancellation")]
    LeakedHandlers(u64),
}

/// When each part of a server last showed life.
#[derive(Default)]
pub(crate) struct Vitals {
    heartbeat: Moment,
    claim: Moment,
    claimer_waits_for_slots: AtomicBool,
    runtime: Moment,
}

impl Vitals {
    pub(crate) fn heartbeat_reached_redis(&self) {
        self.heartbeat.now();
    }

    pub(crate) fn claim_answered(&self) {
        self.claim.now();
    }

    /// While all slots are taken the claimer has nothing to ask.
    pub(crate) fn claimer_waits_for_slots(&self, waits: bool) {
        self.claim.now();
        self.claimer_waits_for_slots.store(waits, Ordering::Relaxed);
    }

    pub(crate) fn runtime_ran(&self) {
        self.runtime.now();
    }

    /// How long the handlers' runtime has not run, once that is worth a word.
    pub(crate) fn runtime_blocked(&self) -> Option<Duration> {
        self.runtime.longer_ago_than(Duration::from_secs(5))
    }

    pub(crate) fn problems(&self, heartbeat: Duration, claims: bool) -> Vec<Problem> {
        let silent = self
            .heartbeat
            .longer_ago_than(heartbeat * 2 + Duration::from_secs(1));
        let unclaimed = self
            .claim
            .longer_ago_than(Duration::from_secs(5))
            .filter(|_| claims && !self.claimer_waits_for_slots.load(Ordering::Relaxed));
        silent
            .map(Problem::NoHeartbeat)
            .into_iter()
            .chain(unclaimed.map(Problem::NoClaim))
            .chain(self.runtime_blocked().map(Problem::RuntimeBlocked))
            .collect()
    }
}

struct Moment(Mutex<Instant>);

impl Default for Moment {
    fn default() -> Self {
        Self(Mutex::new(Instant::now()))
    }
}

impl Moment {
    fn now(&self) {
        *self.0.lock() = Instant::now();
    }

    fn longer_ago_than(&self, limit: Duration) -> Option<Duration> {
        let ago = self.0.lock().elapsed();
        (ago > limit).then_some(ago)
    }
}
