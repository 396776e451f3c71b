//! How to reach Redis and stay connected to it: where it is, one connection that heals, a few that are
//! lent, one that listens. Nothing here knows what is sent.

mod config;
mod endpoint;
mod link;
mod pool;
mod query;
mod subscription;
mod url;

pub use config::{RedisConfig, RedisConfigError};
pub(crate) use endpoint::Endpoint;
pub(crate) use link::Link;
pub(crate) use pool::{Lent, Pool};
pub(crate) use query::Query;
pub(crate) use subscription::Subscription;
pub use url::UrlProblem;
