use std::future::Future;

use redis::{Cmd, Value};

use crate::broker::connection::error::BrokerError;

/// Something that sends one command to Redis and answers its reply: a held link or a pool.
pub(crate) trait Query: Sync {
    fn query(&self, command: &Cmd) -> impl Future<Output = Result<Value, BrokerError>> + Send;
}
