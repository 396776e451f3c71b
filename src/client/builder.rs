use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use super::bulk::Bulk;
use super::endings::Endings;
use super::joiner::Joiner;
use super::{Client, ClientError};
use crate::broker::{Endpoint, Keys, Link, Pool};
use crate::{defaults, task};

/// Connections for bulk enqueues; one is used at a time by each call.
const POOL_SIZE: usize = 4;

/// Settings of a [`Client`].
#[derive(Clone)]
#[must_use = "call connect() or lazy()"]
pub struct ClientBuilder {
    url: String,
    prefix: String,
    connect_timeout: Duration,
    command_timeout: Duration,
    max_payload: usize,
}

impl ClientBuilder {
    pub(super) fn new(url: &str) -> Self {
        Self {
            url: url.to_owned(),
            prefix: defaults::PREFIX.to_owned(),
            connect_timeout: defaults::CONNECT_TIMEOUT,
            command_timeout: defaults::COMMAND_TIMEOUT,
            max_payload: defaults::MAX_PAYLOAD,
        }
    }

    /// The prefix of every key. Default: `windlass`.
    pub fn prefix(mut self, prefix: impl Into<String>) -> Self {
        self.prefix = prefix.into();
        self
    }

    /// How long opening a connection may take. Default: 5 s.
    pub fn connect_timeout(mut self, timeout: Duration) -> Self {
        self.connect_timeout = timeout;
        self
    }

    /// How long Redis may take to answer. Default: 5 s.
    pub fn command_timeout(mut self, timeout: Duration) -> Self {
        self.command_timeout = timeout;
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
    /// A bad URL or prefix, or a Redis that cannot be reached or refuses the login.
    pub async fn connect(self) -> Result<Client, ClientError> {
        let client = self.lazy()?;
        client.joiner.connect().await?;
        Ok(client)
    }

    /// A client that connects at its first enqueue.
    ///
    /// # Errors
    /// A bad URL or prefix, or a timeout of zero.
    pub fn lazy(self) -> Result<Client, ClientError> {
        task::check_prefix(&self.prefix)?;
        let timeouts = [
            ("connect_timeout", self.connect_timeout),
            ("command_timeout", self.command_timeout),
        ];
        if let Some((name, _)) = timeouts.iter().find(|(_, t)| *t < Duration::from_millis(1)) {
            return Err(ClientError::ZeroDuration(name));
        }
        let endpoint = Arc::new(Endpoint::new(
            &self.url,
            self.connect_timeout,
            self.command_timeout,
        )?);
        let keys = Keys::new(&self.prefix);
        let pool = Pool::new(&endpoint, POOL_SIZE)?;
        let patience = self.connect_timeout.saturating_add(self.command_timeout);
        Ok(Client {
            bulk: Arc::new(Bulk::new(pool, keys.clone())),
            endings: Arc::new(Endings::new(endpoint.clone())),
            joiner: Arc::new(Joiner::new(Link::new(endpoint), keys.clone(), patience)),
            keys,
            max_payload: self.max_payload,
        })
    }
}

impl fmt::Debug for ClientBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Not the URL: it may hold a password.
        f.debug_struct("ClientBuilder")
            .field("prefix", &self.prefix)
            .finish_non_exhaustive()
    }
}
