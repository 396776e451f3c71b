use std::sync::Arc;

use crate::broker::{PerRuntime, Pools, RedisConfig};
use crate::client::endings::Endings;
use crate::client::error::ClientError;
use crate::client::handle::Client;
use crate::client::send::{Bulk, Joiner};
use crate::defaults;

/// Connections for bulk enqueues; one is used at a time by each call.
const POOL_SIZE: usize = 4;

/// Settings of a [`Client`].
#[derive(Debug, Clone)]
#[must_use = "call connect() or lazy()"]
pub struct ClientBuilder {
    redis: RedisConfig,
    max_payload: usize,
}

impl Default for ClientBuilder {
    fn default() -> Self {
        Self {
            redis: RedisConfig::default(),
            max_payload: defaults::MAX_PAYLOAD,
        }
    }
}

impl Client {
    /// A client with default settings that has reached Redis: at a URL, or by a [`RedisConfig`].
    ///
    /// # Errors
    /// A URL or [`RedisConfig`] that cannot be used, or a Redis that cannot be reached or refuses the
    /// login.
    pub async fn connect(redis: impl Into<RedisConfig>) -> Result<Self, ClientError> {
        Self::builder().redis(redis).connect().await
    }

    /// A client with default settings that connects at its first enqueue.
    ///
    /// # Errors
    /// A URL or [`RedisConfig`] that cannot be used.
    pub fn lazy(redis: impl Into<RedisConfig>) -> Result<Self, ClientError> {
        Self::builder().redis(redis).lazy()
    }

    /// Settings for a client.
    pub fn builder() -> ClientBuilder {
        ClientBuilder::default()
    }
}

impl ClientBuilder {
    /// Where Redis is, and how to reach it: a URL, or a [`RedisConfig`]. Default: `redis://127.0.0.1/`.
    pub fn redis(mut self, redis: impl Into<RedisConfig>) -> Self {
        self.redis = redis.into();
        self
    }

    /// The largest encoded payload in bytes. Default: 1 MiB. Servers have no cap of their own.
    pub fn max_payload(mut self, bytes: usize) -> Self {
        self.max_payload = bytes;
        self
    }

    /// A client that has reached Redis.
    ///
    /// # Errors
    /// A [`RedisConfig`] that cannot be used, or a Redis that cannot be reached or refuses the login.
    pub async fn connect(self) -> Result<Client, ClientError> {
        let client = self.lazy()?;
        client.joiners.here().connect().await?;
        Ok(client)
    }

    /// A client that connects at its first enqueue.
    ///
    /// # Errors
    /// A [`RedisConfig`] that cannot be used.
    pub fn lazy(self) -> Result<Client, ClientError> {
        let (endpoint, keys) = self.redis.open()?;
        let pools = Arc::new(Pools::new(endpoint.clone(), POOL_SIZE));
        let endings = {
            let endpoint = endpoint.clone();
            PerRuntime::new(move || Endings::new(endpoint.clone()))
        };
        let joiners = {
            let keys = keys.clone();
            PerRuntime::new(move || Joiner::new(endpoint.clone(), keys.clone()))
        };
        Ok(Client {
            bulk: Arc::new(Bulk::new(pools.clone(), keys.clone())),
            endings: Arc::new(endings),
            joiners: Arc::new(joiners),
            pools,
            keys,
            max_payload: self.max_payload,
        })
    }
}
