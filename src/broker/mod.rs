//! The only code that knows Redis: where it is, how to stay connected to it, the keys, the scripts,
//! and one typed function per transition. It knows nothing of handlers.

mod check;
pub(crate) mod clock;
mod endpoint;
mod error;
mod keys;
mod link;
mod lua;
mod pool;
mod query;
mod reply;
mod scan;
mod script;
mod subscription;
mod transitions;
mod wake;

pub use check::RedisFinding;
pub(crate) use check::check_redis;
pub(crate) use endpoint::Endpoint;
pub(crate) use error::Fault;
pub use error::{BrokerError, ConnectProblem, UrlProblem};
pub(crate) use keys::{Keys, Queue};
pub(crate) use link::Link;
pub(crate) use pool::{Lent, Pool};
pub(crate) use query::Query;
pub(crate) use scan::{LeaseScan, RecordScan};
pub(crate) use subscription::Subscription;
pub(crate) use transitions::*;
pub(crate) use wake::wait_for_work;
