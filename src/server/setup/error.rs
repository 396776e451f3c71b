use std::time::Duration;

use thiserror::Error;
use tokio::sync::Semaphore;

use crate::broker::{BrokerError, RedisConfigError, SetupProblem};
use crate::router::RouterError;
use crate::task::NameError;

/// Why a server was not built. Each says what is wrong and what to do.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum BuildError {
    /// The router is incomplete.
    #[error(transparent)]
    Router(#[from] RouterError),
    /// The [`RedisConfig`](crate::RedisConfig) cannot be used.
    #[error(transparent)]
    Config(#[from] RedisConfigError),
    /// A queue's name cannot be used.
    #[error(transparent)]
    Name(#[from] NameError),
    /// There is nothing to serve.
    #[error("the server has no queue: name at least one with queues()")]
    NoQueue,
    /// A worker cannot serve whatever queues there are.
    #[error("all_queues() is for build_reaper(): name the queues of a worker with queues()")]
    AllQueues,
    /// A queue is named twice.
    #[error("queue {0:?} is named twice: name it once, with one weight")]
    QueueTwice(String),
    /// A weight of zero would starve a queue.
    #[error("queue {0:?} has weight 0: give at least 1")]
    ZeroWeight(String),
    /// No handler could run.
    #[error("concurrency is 0: give at least 1")]
    ZeroConcurrency,
    /// More handlers than can be counted.
    #[error("concurrency {0} is too high: give at most {max}", max = Semaphore::MAX_PERMITS)]
    Concurrency(usize),
    /// Leases would end before they could be extended.
    #[error("a lease of {0:?} is too short: give at least 1 s")]
    ShortLease(Duration),
    /// One missed heartbeat would lose leases.
    #[error(
        "a heartbeat of {heartbeat:?} is too slow for a lease of {lease:?}: give at most a third of it"
    )]
    #[non_exhaustive]
    SlowHeartbeat {
        /// The heartbeat given.
        heartbeat: Duration,
        /// The lease given.
        lease: Duration,
    },
    /// Every pause between two looks would pass for an outage.
    #[error(
        "a scan_interval of {scan:?} is too long for leases of {lease:?}: give at most {most:?}, or longer leases"
    )]
    #[non_exhaustive]
    SlowScan {
        /// The scan interval given.
        scan: Duration,
        /// The lease given.
        lease: Duration,
        /// The longest scan interval for this lease, clock skew and heartbeat.
        most: Duration,
    },
    /// It is no part of a whole.
    #[error("a kept_memory of {0} is no part of Redis' memory: give 0.0 to 1.0")]
    KeptMemory(f64),
    /// A time that no clock can hold.
    #[error("{0} is longer than 100 years: give less")]
    LongDuration(&'static str),
    /// A time of zero would never let anything happen.
    #[error("{0} is zero: give at least 1 ms")]
    ZeroDuration(&'static str),
    /// Redis cannot be reached, or refuses.
    #[error(transparent)]
    Broker(#[from] BrokerError),
    /// The signal handlers could not be installed.
    #[error("the signal handlers could not be installed")]
    Signals(#[source] std::io::Error),
    /// Redis can be reached, but must not be used as it is.
    #[error(transparent)]
    Redis(SetupProblem),
}
