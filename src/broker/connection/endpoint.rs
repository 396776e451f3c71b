use std::fmt;
use std::time::Duration;

use redis::aio::{MultiplexedConnection, PubSub};
use redis::{AsyncConnectionConfig, RedisConnectionInfo};
use tokio::time::{Instant, timeout_at};
use tokio_util::task::AbortOnDropHandle;

use crate::broker::connection::address::Address;
use crate::broker::connection::credentials::Credentials;
use crate::broker::connection::dial::{self, Stream, TcpSettings};
use crate::broker::connection::error::BrokerError;
use crate::broker::connection::handshake::shake_hands;
use crate::broker::connection::live::Live;
use crate::broker::connection::pace::Pace;
use crate::broker::connection::problem::{ConnectProblem, Failure};
use crate::broker::connection::resolver::Resolver;
#[cfg(feature = "tls")]
use crate::broker::connection::tls::Tls;
/// Where Redis is and how to connect to it: the one place that knows a plain server from TLS and a
/// Unix socket.
pub(crate) struct Endpoint {
    pub(super) address: Address,
    pub(super) login: Option<Credentials>,
    pub(super) database: i64,
    pub(super) tcp: TcpSettings,
    /// Present where the address asks for it.
    #[cfg(feature = "tls")]
    pub(super) tls: Option<Tls>,
    pub(super) connect_timeout: Duration,
    pub(super) command_timeout: Duration,
    /// How long a Redis is waited for that does not serve yet.
    pub(super) patience: Duration,
    pub(super) resolver: Resolver,
    /// Of all connections to it.
    pub(super) pace: Pace,
}

impl Endpoint {
    /// Host and port, or the socket's path: never a password.
    pub(crate) fn address(&self) -> String {
        self.address.to_string()
    }

    pub(crate) fn command_timeout(&self) -> Duration {
        self.command_timeout
    }

    pub(crate) fn connect_timeout(&self) -> Duration {
        self.connect_timeout
    }

    /// A fresh connection on which each command has this long to be answered.
    pub(super) async fn connect(&self, response_timeout: Duration) -> Result<Live, BrokerError> {
        let stream = self.open().await?;
        // The library's own default is 0.5 s.
        let config = AsyncConnectionConfig::new().set_response_timeout(Some(response_timeout));
        let (redis, driver) = MultiplexedConnection::new_with_config(&greeted(), stream, config)
            .await
            .map_err(|error| self.failed(Failure::new(ConnectProblem::Other, error)))?;
        Ok(Live::new(
            redis,
            AbortOnDropHandle::new(tokio::spawn(driver)),
        ))
    }

    /// A fresh connection that listens.
    pub(super) async fn listen(&self) -> Result<PubSub, BrokerError> {
        let stream = self.open().await?;
        PubSub::new(&greeted(), stream)
            .await
            .map_err(|error| self.failed(Failure::new(ConnectProblem::Other, error)))
    }

    async fn open(&self) -> Result<Box<dyn Stream>, BrokerError> {
        let until = Instant::now() + self.connect_timeout;
        let opened = async {
            let stream = self.dial(until).await?;
            let shaken = shake_hands(stream, self.login.as_ref(), self.database);
            timeout_at(until, shaken).await?
        };
        opened.await.map_err(|failure| self.failed(failure))
    }

    async fn dial(&self, until: Instant) -> Result<Box<dyn Stream>, Failure> {
        let (host, port) = match &self.address {
            Address::Unix(path) => {
                return Ok(Box::new(timeout_at(until, dial::unix(path)).await??));
            }
            Address::Tcp { host, port, .. } => (host, *port),
        };
        let stream = dial::tcp(host, port, self.tcp, &self.resolver);
        let stream = timeout_at(until, stream).await??;
        #[cfg(feature = "tls")]
        if let Some(tls) = &self.tls {
            return tls.secure(stream, until).await;
        }
        Ok(Box::new(stream))
    }

    fn failed(&self, failure: Failure) -> BrokerError {
        BrokerError::Connect {
            address: self.address(),
            problem: failure.problem,
            source: failure.source,
        }
    }

    /// No connection came in time.
    pub(super) fn too_late(&self, elapsed: tokio::time::error::Elapsed) -> BrokerError {
        self.failed(elapsed.into())
    }
}

/// What the library is to do on a new connection: nothing, because hands were shaken.
fn greeted() -> RedisConnectionInfo {
    RedisConnectionInfo::default().set_skip_set_lib_name()
}

impl fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Endpoint")
            .field("address", &self.address)
            .finish_non_exhaustive()
    }
}
