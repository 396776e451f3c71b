use std::time::Duration;

use redis::aio::MultiplexedConnection;
use redis::io::tcp::TcpSettings;
use redis::{AsyncConnectionConfig, Client, ConnectionInfo, IntoConnectionInfo, Value};

use super::{BrokerError, UrlProblem};

/// Where Redis is and how to connect to it: the one place that knows a plain server from TLS and a
/// Unix socket.
#[derive(Debug)]
pub(crate) struct Endpoint {
    client: Client,
    address: String,
    connect_timeout: Duration,
    command_timeout: Duration,
}

impl Endpoint {
    pub(crate) fn new(
        url: &str,
        connect_timeout: Duration,
        command_timeout: Duration,
    ) -> Result<Self, BrokerError> {
        let problem = |problem| BrokerError::Url {
            url: without_password(url),
            problem,
        };
        match url.split_once("://").map(|(scheme, _)| scheme) {
            Some("redis" | "unix" | "redis+unix") => {}
            #[cfg(feature = "tls")]
            Some("rediss") => provide_cryptography(),
            #[cfg(not(feature = "tls"))]
            Some("rediss") => return Err(problem(UrlProblem::TlsFeature)),
            _ => return Err(problem(UrlProblem::Scheme)),
        }
        // Where one begins unasked, in a password, the rest of it would be taken for the host.
        if url.contains('#') {
            return Err(problem(UrlProblem::Malformed));
        }
        let info = url
            .into_connection_info()
            .map_err(|_| problem(UrlProblem::Malformed))?
            // Off by default, and it costs up to 40 ms a command.
            .set_tcp_settings(TcpSettings::default().set_nodelay(true));
        let address = info.addr().to_string();
        let client = Client::open(info).map_err(|_| problem(UrlProblem::Malformed))?;
        Ok(Self {
            client,
            address,
            connect_timeout,
            command_timeout,
        })
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

/// As much of a URL as surely holds no password, also where it is not the URL that was meant.
fn without_password(url: &str) -> String {
    // What follows may be `?pass=…`.
    const REST: [char; 3] = ['?', '#', '&'];
    let Some((login, host)) = url.rsplit_once('@') else {
        return url.split(REST).next().unwrap_or_default().to_owned();
    };
    let host = host.split(REST).next().unwrap_or_default();
    match login.split_once("://") {
        Some((scheme, login)) => {
            let user = login.split([':', '/', '?', '#', '&']).next();
            format!("{scheme}://{}:***@{host}", user.unwrap_or_default())
        }
        None => format!("***@{host}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problem(url: &str) -> String {
        Endpoint::new(url, Duration::from_secs(1), Duration::from_secs(1))
            .expect_err(url)
            .to_string()
    }

    #[test]
    fn bad_urls_are_named_without_their_password() {
        for url in [
            "",
            "127.0.0.1:6379",
            "http://127.0.0.1",
            "redis://:secret@host:port",
            "redis://u:secret@h/x",
            "u:secret@h:6379",
            "secret@h",
            "redis://h:port/?pass=secret",
            "unix:///s?pass=secret&user=a@b&db=x",
            "redis://u:sec?secret@h:port",
            "redis://:x@secret#x@h/",
        ] {
            let message = problem(url);
            assert!(
                message.contains("cannot be used") && !message.contains("secret"),
                "{message}"
            );
        }
    }

    #[cfg(not(feature = "tls"))]
    #[test]
    fn tls_urls_without_the_feature_name_the_feature() {
        assert!(problem("rediss://127.0.0.1").contains("feature `tls`"));
    }
}
