use std::fmt;
use std::time::Duration;

use redis::aio::MultiplexedConnection;
use redis::{AsyncConnectionConfig, Client, ConnectionInfo, Value};

use crate::broker::BrokerError;

/// Where Redis is and how to connect to it: the one place that knows a plain server from TLS and a
/// Unix socket.
pub(crate) struct Endpoint {
    client: Client,
    address: String,
    connect_timeout: Duration,
    command_timeout: Duration,
}

impl Endpoint {
    pub(super) fn new(
        target: ConnectionInfo,
        connect_timeout: Duration,
        command_timeout: Duration,
    ) -> Self {
        #[cfg(feature = "tls")]
        provide_cryptography();
        Self {
            address: target.addr().to_string(),
            client: Client::open(target).expect("it is one already"),
            connect_timeout,
            command_timeout,
        }
    }

    /// Host and port, or the socket's path: never a password.
    pub(crate) fn address(&self) -> &str {
        &self.address
    }

    pub(crate) fn command_timeout(&self) -> Duration {
        self.command_timeout
    }

    pub(crate) fn connect_timeout(&self) -> Duration {
        self.connect_timeout
    }

    /// A fresh connection on which each command has this long to be answered.
    pub(crate) async fn connect(
        &self,
        response_timeout: Duration,
    ) -> Result<MultiplexedConnection, BrokerError> {
        let config = self.config(response_timeout);
        let open = async {
            let mut connection = self
                .client
                .get_multiplexed_async_connection_with_config(&config)
                .await?;
            // The library's handshake does not ask for an answer: a login may still be missing.
            let answer = connection.send_packed_command(&redis::cmd("PING")).await;
            match answer.and_then(Value::extract_error) {
                // Other errors of Redis itself may pass, and are the next command's business.
                Err(error) if error.code().is_none_or(|code| code == "NOAUTH") => Err(error),
                _ => Ok(connection),
            }
        };
        match tokio::time::timeout(self.connect_timeout, open).await {
            Ok(opened) => opened.map_err(|error| BrokerError::connect(error, &self.address)),
            Err(elapsed) => Err(BrokerError::no_connection(&self.address, elapsed)),
        }
    }

    pub(super) async fn pubsub(&self) -> Result<redis::aio::PubSub, BrokerError> {
        self.client
            .get_async_pubsub()
            .await
            .map_err(|error| BrokerError::connect(error, &self.address))
    }

    pub(super) fn connection_info(&self) -> ConnectionInfo {
        self.client.get_connection_info().clone()
    }

    /// Both timeouts are set: the library's own defaults are 0.5 s and 1 s.
    pub(super) fn config(&self, response_timeout: Duration) -> AsyncConnectionConfig {
        AsyncConnectionConfig::new()
            .set_connection_timeout(Some(self.connect_timeout))
            .set_response_timeout(Some(response_timeout))
    }
}

/// TLS panics where it does not know whose cryptography to use. What the program has chosen stays.
#[cfg(feature = "tls")]
fn provide_cryptography() {
    if rustls::crypto::CryptoProvider::get_default().is_none() {
        // Fails where another thread was faster, which is as good.
        let _ = rustls::crypto::ring::default_provider().install_default();
    }
}

impl fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Endpoint")
            .field("address", &self.address)
            .finish_non_exhaustive()
    }
}
