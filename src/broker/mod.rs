//! The only code that knows Redis: where it is, how to stay connected to it, the keys, the scripts,
//! and one typed function per transition. It knows nothing of handlers.

mod archive_reason;
mod census;
mod check;
pub(crate) mod clock;
mod connection;
mod exists;
mod keys;
mod lua;
mod memory;
mod reply;
mod scan;
mod script;
mod transitions;
mod wake;

pub use archive_reason::ArchiveReason;
pub(crate) use archive_reason::DEADLINE_PASSED;
pub(crate) use census::{list_of_queues, unserved};
pub use check::SetupProblem;
pub(crate) use check::{check_control, check_redis};
pub use connection::{BrokerError, ConnectProblem, RedisConfig, RedisConfigError, UrlProblem};
pub(crate) use connection::{
    Endpoint, Fault, Lent, Link, PerRuntime, Pool, Pools, Query, Subscription, pauses,
};
pub(crate) use exists::{queues_with, queues_with_any};
pub(crate) use keys::{Keys, Queue};
pub(crate) use memory::{Memory, memory};
pub(crate) use scan::{LeaseScan, RecordScan};
pub(crate) use transitions::*;
pub(crate) use wake::wait_for_work;
