//! How to reach Redis and stay connected to it: where it is, one connection that heals, a few that are
//! lent, one that listens. Nothing here knows what is sent.

mod address;
mod config;
mod credentials;
mod dial;
mod endpoint;
mod error;
mod handshake;
mod invalid;
mod link;
mod live;
mod moment;
mod pace;
mod patience;
mod per_runtime;
mod pool;
mod problem;
mod query;
mod resolver;
mod subscription;
#[cfg(feature = "tls")]
mod tls;
mod url;

pub use config::RedisConfig;
pub(crate) use endpoint::Endpoint;
pub use error::BrokerError;
pub(crate) use error::Fault;
pub use invalid::{RedisConfigError, UrlProblem};
pub(crate) use link::Link;
pub(crate) use pace::pauses;
pub(crate) use per_runtime::PerRuntime;
pub(crate) use pool::{Lent, Pool, Pools};
pub use problem::ConnectProblem;
pub(crate) use query::Query;
pub(crate) use subscription::Subscription;
