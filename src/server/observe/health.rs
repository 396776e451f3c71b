use std::collections::BTreeSet;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use crate::server::phase::Phase;

/// Whether a server does its work.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Health {
    /// What the server is doing.
    pub phase: Phase,
    /// What is wrong; empty when all is well.
    pub problems: Vec<HealthProblem>,
}

impl Health {
    /// Whether nothing is wrong. A server that stops or has stopped because it was asked to is healthy.
    pub fn is_healthy(&self) -> bool {
        self.problems.is_empty()
    }

    /// Whether it may go on as it is: false when only a new process helps, because a handler blocks the
    /// runtime or a part of the server has died. A Redis that is away is waited for, and a server that
    /// was asked to stop must not be killed for it. For a liveness probe.
    pub fn is_live(&self) -> bool {
        !self.problems.iter().any(HealthProblem::needs_restart)
    }

    /// Whether it claims tasks, or as a reaper looks after its queues: false while it starts, is quiet, stops,
    /// or has stopped, and while Redis is away. For a readiness probe.
    pub fn is_ready(&self) -> bool {
        self.phase == Phase::Running
            && !self.problems.iter().any(HealthProblem::keeps_from_claiming)
    }
}

/// Something that keeps a server from its work.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum HealthProblem {
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
    /// Redis is nearly full of its `maxmemory`: soon it refuses enqueues.
    #[error(
        "Redis uses {used} of {limit} bytes; archived and completed tasks of this server's queues take about {kept} of them"
    )]
    RedisNearlyFull {
        /// How much it uses.
        used: u64,
        /// Its `maxmemory`.
        limit: u64,
        /// How much of it archived and completed tasks of the server's queues take.
        kept: u64,
    },
    /// Found by a [reaper](crate::server::ServerBuilder::build_reaper): a queue has tasks, and no live server
    /// claims them.
    #[error("queue {0:?} has tasks, and no worker serves it")]
    UnservedQueue(String),
    /// A part of the server panicked, so the server has stopped or is about to.
    #[error("the {0} ended unasked, so the server stops: restart it")]
    Died(&'static str),
}

impl HealthProblem {
    fn needs_restart(&self) -> bool {
        matches!(self, Self::RuntimeBlocked(_) | Self::Died(_))
    }

    fn keeps_from_claiming(&self) -> bool {
        !matches!(
            self,
            Self::LeakedHandlers(_) | Self::RedisNearlyFull { .. } | Self::UnservedQueue(_)
        )
    }
}

/// When each part of a server last showed life.
#[derive(Default)]
pub(crate) struct Vitals {
    /// Not set before the server runs.
    begun: OnceLock<Instant>,
    heartbeat: Moment,
    claim: Moment,
    claimer_waits_for_slots: AtomicBool,
    runtime: Moment,
    nearly_full: Mutex<Option<HealthProblem>>,
    /// Queues that have tasks and no worker.
    unserved: Mutex<BTreeSet<String>>,
    died: OnceLock<&'static str>,
}

impl Vitals {
    pub(crate) fn begin(&self) {
        self.begun.get_or_init(Instant::now);
    }

    pub(crate) fn heartbeat_reached_redis(&self) {
        self.heartbeat.now();
    }

    pub(crate) fn claim_answered(&self) {
        self.claim.now();
    }

    /// A server that was quiet claims again: its last claim is long ago.
    pub(crate) fn claims_again(&self) {
        self.claim.renew();
    }

    /// While all slots are taken the claimer has nothing to ask.
    pub(crate) fn claimer_waits_for_slots(&self, waits: bool) {
        self.claim.now();
        self.claimer_waits_for_slots.store(waits, Ordering::Relaxed);
    }

    pub(crate) fn runtime_ran(&self) {
        self.runtime.now();
    }

    /// How full Redis is, where that is worth a word.
    pub(crate) fn memory_is(&self, nearly_full: Option<HealthProblem>) {
        *self.nearly_full.lock() = nearly_full;
    }

    /// Which queues have tasks and no worker. Returns which had none before.
    pub(crate) fn unserved_are(&self, queues: BTreeSet<String>) -> BTreeSet<String> {
        std::mem::replace(&mut self.unserved.lock(), queues)
    }

    /// A component has ended unasked.
    pub(crate) fn died(&self, component: &'static str) {
        self.died.get_or_init(|| component);
    }

    /// How long the handlers' runtime has not run, once that is worth a word.
    pub(crate) fn runtime_blocked(&self) -> Option<Duration> {
        self.silence(&self.runtime, Duration::from_secs(5))
    }

    /// How a server is that is in this phase and has this heartbeat; whether it claims.
    pub(crate) fn health(&self, phase: Phase, heartbeat: Duration, claims: bool) -> Health {
        let first_answer = if claims { &self.claim } else { &self.heartbeat };
        let phase = match phase {
            Phase::Running if !first_answer.has_been() => Phase::Starting,
            phase => phase,
        };
        let died = self.died.get().copied().map(HealthProblem::Died);
        // Nothing is expected of one that has ended.
        let silences = (phase != Phase::Stopped).then(|| self.silences(phase, heartbeat, claims));
        Health {
            phase,
            problems: died
                .into_iter()
                .chain(silences.into_iter().flatten())
                .collect(),
        }
    }

    fn silences(
        &self,
        phase: Phase,
        heartbeat: Duration,
        claims: bool,
    ) -> impl Iterator<Item = HealthProblem> {
        let silent = self.silence(&self.heartbeat, heartbeat * 2 + Duration::from_secs(1));
        let unclaimed = self.silence(&self.claim, Duration::from_secs(5));
        let must_claim =
            claims && phase < Phase::Quiet && !self.claimer_waits_for_slots.load(Ordering::Relaxed);
        let unclaimed = unclaimed.filter(|_| must_claim);
        [
            silent.map(HealthProblem::NoHeartbeat),
            unclaimed.map(HealthProblem::NoClaim),
            self.runtime_blocked().map(HealthProblem::RuntimeBlocked),
            self.nearly_full.lock().clone(),
        ]
        .into_iter()
        .flatten()
        .chain(
            self.unserved
                .lock()
                .clone()
                .into_iter()
                .map(HealthProblem::UnservedQueue),
        )
    }

    /// For how long a running server has seen nothing of this, if longer than `limit`.
    fn silence(&self, last: &Moment, limit: Duration) -> Option<Duration> {
        let since = last.get().or(self.begun.get().copied())?;
        Some(since.elapsed()).filter(|ago| *ago > limit)
    }
}

/// When something last happened.
#[derive(Default)]
struct Moment(Mutex<Option<Instant>>);

impl Moment {
    fn now(&self) {
        *self.0.lock() = Some(Instant::now());
    }

    /// Now, if it has ever happened.
    fn renew(&self) {
        if let Some(moment) = &mut *self.0.lock() {
            *moment = Instant::now();
        }
    }

    fn has_been(&self) -> bool {
        self.get().is_some()
    }

    fn get(&self) -> Option<Instant> {
        *self.0.lock()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_each_problem_means_to_a_probe() {
        let long = Duration::from_secs(60);
        let full = HealthProblem::RedisNearlyFull {
            used: 9,
            limit: 10,
            kept: 1,
        };
        for (problem, live, ready) in [
            (HealthProblem::NoHeartbeat(long), true, false),
            (HealthProblem::NoClaim(long), true, false),
            (HealthProblem::RuntimeBlocked(long), false, false),
            (HealthProblem::LeakedHandlers(1), true, true),
            (full, true, true),
            (HealthProblem::UnservedQueue("q".into()), true, true),
            (HealthProblem::Died("claimer"), false, false),
        ] {
            let health = Health {
                problems: vec![problem.clone()],
                phase: Phase::Running,
            };
            let said = (health.is_live(), health.is_ready());
            assert_eq!(said, (live, ready), "{problem}");
        }
    }

    #[test]
    fn what_each_phase_means_to_a_probe() {
        for (phase, ready) in [
            (Phase::Starting, false),
            (Phase::Running, true),
            (Phase::Quiet, false),
            (Phase::Stopping, false),
            (Phase::Hurrying, false),
            (Phase::Stopped, false),
        ] {
            let problems = Vec::new();
            let health = Health { phase, problems };
            let said = (health.is_live(), health.is_ready());
            assert_eq!(said, (true, ready), "{phase}");
        }
    }

    #[test]
    fn a_server_that_does_not_run_is_expected_to_do_nothing() {
        let vitals = Vitals::default();
        let health = vitals.health(Phase::Running, Duration::ZERO, true);
        assert_eq!((health.phase, health.problems), (Phase::Starting, vec![]));
        vitals.begin();
        vitals.claim_answered();
        std::thread::sleep(Duration::from_millis(1));
        let health = vitals.health(Phase::Stopped, Duration::ZERO, true);
        assert_eq!((health.phase, health.problems), (Phase::Stopped, vec![]));
        vitals.died("claimer");
        let health = vitals.health(Phase::Stopped, Duration::ZERO, true);
        assert_eq!(health.problems, [HealthProblem::Died("claimer")]);
    }
}
