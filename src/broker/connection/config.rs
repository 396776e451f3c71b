use std::fmt;
#[cfg(feature = "tls")]
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

#[cfg(feature = "tls")]
use crate::broker::connection::address::Address;
use crate::broker::connection::dial::TcpSettings;
use crate::broker::connection::endpoint::Endpoint;
use crate::broker::connection::invalid::RedisConfigError;
use crate::broker::connection::pace::Pace;
use crate::broker::connection::resolver::Resolver;
#[cfg(feature = "tls")]
use crate::broker::connection::tls::{Tls, TlsFiles};
use crate::broker::connection::url::{self, Target};
use crate::broker::keys::Keys;
use crate::defaults::{self, FAR};
use crate::task::check_prefix;

/// Where Redis is and how to reach it: what a [`Client`], a [`Server`] and an [`Inspector`] are
/// connected by. Wherever one is taken, a URL alone will do.
///
/// ```no_run
/// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
/// use std::time::Duration;
/// use windlass::{Client, Inspector, RedisConfig, Server};
///
/// let redis = RedisConfig::new("redis://:secret@redis.example.org/")
///     .prefix("shop")
///     .command_timeout(Duration::from_secs(2));
/// let client = Client::connect(&redis).await?;
/// let inspector = Inspector::connect(&redis).await?;
/// let server = Server::builder().redis(&redis);
/// # Ok(()) }
/// ```
///
/// It is checked when it is used: by `connect`, `lazy` or `build`.
///
/// [`Client`]: crate::Client
/// [`Server`]: crate::Server
/// [`Inspector`]: crate::Inspector
#[derive(Clone)]
#[must_use = "give it to a client, a server or an inspector"]
pub struct RedisConfig {
    url: String,
    prefix: String,
    connect_timeout: Duration,
    command_timeout: Duration,
    patience: Duration,
    tcp_keepalive: Duration,
    tcp_user_timeout: Duration,
    #[cfg(feature = "tls")]
    tls_files: TlsFiles,
}

impl RedisConfig {
    /// Redis at this URL: `redis://user:password@host:port/db`, `unix:///path/of/the/socket`, or
    /// `rediss://…` with the feature `tls`.
    pub fn new(url: impl Into<String>) -> Self {
        Self {
            url: url.into(),
            prefix: defaults::PREFIX.to_owned(),
            connect_timeout: defaults::CONNECT_TIMEOUT,
            command_timeout: defaults::COMMAND_TIMEOUT,
            patience: Duration::ZERO,
            tcp_keepalive: defaults::TCP_KEEPALIVE,
            tcp_user_timeout: defaults::TCP_USER_TIMEOUT,
            #[cfg(feature = "tls")]
            tls_files: TlsFiles::default(),
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

    /// How long Redis may take to answer a command. Default: 5 s.
    pub fn command_timeout(mut self, timeout: Duration) -> Self {
        self.command_timeout = timeout;
        self
    }

    /// How long `connect` or `build` waits for a Redis that is not up yet, or that loads its data. A
    /// login that is refused, or a failure of TLS, is not waited for. Without this they fail at once.
    pub fn wait_for_redis(mut self, limit: Duration) -> Self {
        self.patience = limit;
        self
    }

    /// How long a TCP connection may be silent before the system asks whether its other end still
    /// lives. After three questions without an answer, each a third of this after the one before, it
    /// gives the connection up. At least 3 s. Default: 15 s.
    pub fn tcp_keepalive(mut self, silence: Duration) -> Self {
        self.tcp_keepalive = silence;
        self
    }

    /// How long what was sent on a TCP connection may stay unacknowledged before the system gives the
    /// connection up. Only Linux heeds it. Default: 20 s.
    pub fn tcp_user_timeout(mut self, timeout: Duration) -> Self {
        self.tcp_user_timeout = timeout;
        self
    }

    /// A PEM file with the certificates of the authorities that Redis' own certificate may come from.
    /// Default: those that the system trusts.
    #[cfg(feature = "tls")]
    pub fn tls_authority(mut self, file: impl Into<PathBuf>) -> Self {
        self.tls_files.authority = Some(file.into());
        self
    }

    /// PEM files with a certificate, and the certificates behind it, and its key, by which Redis knows
    /// this program. Default: none.
    #[cfg(feature = "tls")]
    pub fn tls_identity(
        mut self,
        certificate: impl Into<PathBuf>,
        key: impl Into<PathBuf>,
    ) -> Self {
        self.tls_files.identity = Some((certificate.into(), key.into()));
        self
    }

    /// Checks everything, and reads the files.
    pub(crate) fn open(&self) -> Result<(Arc<Endpoint>, Keys), RedisConfigError> {
        check_prefix(&self.prefix)?;
        let (ms, s) = (Duration::from_millis(1), Duration::from_secs(1));
        for (setting, duration, least) in [
            ("connect_timeout", self.connect_timeout, ms),
            ("command_timeout", self.command_timeout, ms),
            ("wait_for_redis", self.patience, Duration::ZERO),
            // The system counts seconds.
            ("tcp_keepalive", self.tcp_keepalive, 3 * s),
            ("tcp_user_timeout", self.tcp_user_timeout, ms),
        ] {
            if duration < least {
                return Err(RedisConfigError::TooShort { setting, least });
            }
            if duration > FAR {
                return Err(RedisConfigError::TooLong(setting));
            }
        }
        let Target {
            address,
            login,
            database,
        } = url::parse(&self.url)?;
        let endpoint = Endpoint {
            #[cfg(feature = "tls")]
            tls: self.tls(&address)?,
            address,
            login,
            database,
            tcp: TcpSettings {
                keepalive: self.tcp_keepalive,
                user_timeout: self.tcp_user_timeout,
            },
            connect_timeout: self.connect_timeout,
            command_timeout: self.command_timeout,
            patience: self.patience,
            resolver: Resolver::default(),
            pace: Pace::default(),
        };
        Ok((Arc::new(endpoint), Keys::new(&self.prefix)))
    }

    #[cfg(feature = "tls")]
    fn tls(&self, address: &Address) -> Result<Option<Tls>, RedisConfigError> {
        match address {
            Address::Tcp {
                host, tls: true, ..
            } => Tls::new(host, &self.tls_files).map(Some),
            _ if self.tls_files.are_given() => Err(RedisConfigError::TlsUnused),
            _ => Ok(None),
        }
    }
}

impl Default for RedisConfig {
    /// Redis at `redis://127.0.0.1/`.
    fn default() -> Self {
        Self::new(defaults::REDIS_URL)
    }
}

impl From<&str> for RedisConfig {
    fn from(url: &str) -> Self {
        Self::new(url)
    }
}

impl From<String> for RedisConfig {
    fn from(url: String) -> Self {
        Self::new(url)
    }
}

impl From<&String> for RedisConfig {
    fn from(url: &String) -> Self {
        Self::new(url)
    }
}

impl From<&RedisConfig> for RedisConfig {
    fn from(config: &RedisConfig) -> Self {
        config.clone()
    }
}

impl fmt::Debug for RedisConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Of the URL only what surely is no password.
        f.debug_struct("RedisConfig")
            .field("address", &url::shown(&self.url))
            .field("prefix", &self.prefix)
            .field("connect_timeout", &self.connect_timeout)
            .field("command_timeout", &self.command_timeout)
            .field("wait_for_redis", &self.patience)
            .field("tcp_keepalive", &self.tcp_keepalive)
            .field("tcp_user_timeout", &self.tcp_user_timeout)
            .finish()
    }
}
