use std::error::Error as StdError;
use std::sync::Arc;
use std::time::Duration;

use crate::defaults::{self, HOOK_LAPSE, RECONNECT_CAP};
use crate::server::observe::event::Event;
use crate::server::shared::failed_attempt::FailedAttempt;
use crate::server::shared::retry_delay::default_retry_delay;

pub(crate) type RetryDelayFn = Arc<dyn Fn(&FailedAttempt<'_>) -> Duration + Send + Sync>;
pub(crate) type IsFailureFn =
    Arc<dyn Fn(&(dyn StdError + Send + Sync + 'static)) -> bool + Send + Sync>;
pub(crate) type ObserverFn = Arc<dyn Fn(&Event) + Send + Sync>;

/// What a server does with a task whose kind it does not know.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum UnknownKind {
    /// Puts it off for 10 s ± half, without spending a retry, so that a server that knows it may
    /// take it.
    #[default]
    Defer,
    /// Archives it at once.
    Archive,
}

/// What a server does with a task whose payload its handler's type cannot be decoded from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Undecodable {
    /// Puts it off for 10 s ± half, without spending a retry, so that a server of a newer or an older
    /// version may take it; after about 10 min of that it is archived.
    #[default]
    Defer,
    /// Archives it at once.
    Archive,
}

/// What a lost lease costs its task.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum LostLeases {
    /// It counts as a failed attempt, because a task may be what kills its servers; unless the function
    /// given to [`is_failure`](crate::server::ServerBuilder::is_failure) says no to [`LeaseExpired`](crate::server::LeaseExpired).
    #[default]
    CountAsFailure,
    /// It spends no retry. The limit of lost leases in a row still holds.
    Redeliver,
}

/// What a server is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    /// Runs tasks, and looks after its queues.
    Worker,
    /// Only looks after its queues.
    Reaper {
        /// These are all that there are.
        of_all_queues: bool,
    },
}

impl Role {
    pub(crate) fn claims(self) -> bool {
        self == Self::Worker
    }
}

/// A server's settings, checked.
#[derive(Clone)]
pub(crate) struct Config {
    pub(crate) role: Role,
    pub(crate) strict: bool,
    pub(crate) concurrency: usize,
    pub(crate) lease: Duration,
    pub(crate) heartbeat: Duration,
    pub(crate) clock_skew: Duration,
    pub(crate) scan: Duration,
    pub(crate) shutdown_grace: Duration,
    pub(crate) cancel_grace: Duration,
    pub(crate) max_lost: u32,
    pub(crate) lost_leases: LostLeases,
    pub(crate) lost_lease_delay: Duration,
    pub(crate) unknown_kind: UnknownKind,
    pub(crate) undecodable: Undecodable,
    pub(crate) archive_tasks: usize,
    pub(crate) archive_age: Duration,
    pub(crate) kept_memory: f64,
    pub(crate) keep_for_hooks: Duration,
    pub(crate) sweep_interval: Duration,
    pub(crate) retry_delay: RetryDelayFn,
    pub(crate) is_failure: IsFailureFn,
    pub(crate) observer: Option<ObserverFn>,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            role: Role::Worker,
            strict: false,
            concurrency: defaults::CONCURRENCY,
            lease: defaults::LEASE,
            heartbeat: defaults::HEARTBEAT,
            clock_skew: defaults::CLOCK_SKEW,
            scan: defaults::SCAN,
            shutdown_grace: defaults::SHUTDOWN_GRACE,
            cancel_grace: defaults::CANCEL_GRACE,
            max_lost: defaults::MAX_LOST,
            lost_leases: LostLeases::default(),
            lost_lease_delay: Duration::ZERO,
            unknown_kind: UnknownKind::default(),
            undecodable: Undecodable::default(),
            archive_tasks: defaults::ARCHIVE_TASKS,
            archive_age: defaults::ARCHIVE_AGE,
            kept_memory: defaults::KEPT_MEMORY,
            keep_for_hooks: defaults::KEEP_FOR_HOOKS,
            sweep_interval: defaults::SWEEP,
            retry_delay: Arc::new(|attempt| default_retry_delay(attempt.retried)),
            is_failure: Arc::new(|_| true),
            observer: None,
        }
    }
}

impl Config {
    /// The longest outage in which no server that lives loses a lease: it may begin just before a
    /// heartbeat, and the next one comes only when the server has reached Redis again.
    pub(crate) fn harmless_outage(&self) -> Duration {
        let reconnect = self.heartbeat.min(RECONNECT_CAP);
        (self.lease + self.clock_skew).saturating_sub(self.heartbeat + reconnect)
    }

    /// How long a hook stays known that no server renews: through every outage after which no lease is
    /// spared, and a deployment.
    pub(crate) fn hooks_last(&self) -> Duration {
        self.lease + self.clock_skew + HOOK_LAPSE
    }

    /// For how long after an outage no lease is taken: time for a heartbeat of every server that lives.
    pub(crate) fn grace(&self) -> Duration {
        self.heartbeat + RECONNECT_CAP + Duration::from_secs(2)
    }
}
