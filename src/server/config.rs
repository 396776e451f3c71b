use std::error::Error as StdError;
use std::sync::Arc;
use std::time::Duration;

use super::{Event, FailedAttempt};

pub(super) type RetryDelayFn = Arc<dyn Fn(&FailedAttempt<'_>) -> Duration + Send + Sync>;
pub(super) type IsFailureFn =
    Arc<dyn Fn(&(dyn StdError + Send + Sync + 'static)) -> bool + Send + Sync>;
pub(super) type ObserverFn = Arc<dyn Fn(&Event) + Send + Sync>;

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

/// What a lost lease costs its task.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum LostLeases {
    /// It counts as a failed try, because a task may be what kills its servers.
    #[default]
    CountAsFailure,
    /// It spends no retry. The limit of lost leases in a row still holds.
    Redeliver,
}

/// A server's settings, checked.
#[derive(Clone)]
pub(super) struct Config {
    pub(super) strict: bool,
    pub(super) concurrency: usize,
    pub(super) lease: Duration,
    pub(super) heartbeat: Duration,
    pub(super) clock_skew: Duration,
    pub(super) scan: Duration,
    pub(super) shutdown_grace: Duration,
    pub(super) cancel_grace: Duration,
    pub(super) max_lost: u32,
    pub(super) lost_leases: LostLeases,
    pub(super) unknown_kind: UnknownKind,
    pub(super) archive_tasks: usize,
    pub(super) archive_age: Duration,
    pub(super) sweep_interval: Duration,
    pub(super) retry_delay: RetryDelayFn,
    pub(super) is_failure: IsFailureFn,
    pub(super) observer: Option<ObserverFn>,
}
