use std::error::Error as StdError;
use std::path::PathBuf;
use std::time::Duration;

use thiserror::Error;

use crate::task::NameError;

/// Why a [`RedisConfig`](crate::RedisConfig) cannot be used.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum RedisConfigError {
    /// The URL cannot be used.
    #[error("the Redis URL {url} cannot be used: {problem}")]
    #[non_exhaustive]
    Url {
        /// The URL's scheme, and nothing else of it: where the password is may be the mistake.
        url: String,
        /// What is wrong with it.
        problem: UrlProblem,
    },
    /// The prefix cannot be one.
    #[error(transparent)]
    Prefix(#[from] NameError),
    /// Every call would fail.
    #[error("{setting} is too short: give at least {least:?}")]
    #[non_exhaustive]
    TooShort {
        /// The setting's name.
        setting: &'static str,
        /// The shortest time that it may be.
        least: Duration,
    },
    /// No clock can hold it.
    #[error("{0} is longer than 100 years: give less")]
    TooLong(&'static str),
    /// A file of certificates or a key cannot be used.
    #[error("the file {path:?} cannot be used for TLS")]
    #[non_exhaustive]
    TlsFile {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        #[source]
        source: Box<dyn StdError + Send + Sync>,
    },
    /// The system trusts no authority.
    #[error(
        "the system has no certificate of an authority: install some, or name one by tls_authority()"
    )]
    NoAuthority,
    /// The program's own choice of cryptography has no version of TLS that is safe.
    #[error("TLS cannot be set up")]
    Tls(#[source] Box<dyn StdError + Send + Sync>),
    /// Files for TLS, and no TLS.
    #[error("files for TLS are given, but the URL is not one of rediss://")]
    TlsUnused,
}

/// What is wrong with a Redis URL.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum UrlProblem {
    /// The scheme is unknown.
    #[error("its scheme is none of redis://, rediss:// and unix://")]
    Scheme,
    /// It asks for TLS, which this build lacks.
    #[error("rediss:// needs windlass' feature `tls`")]
    TlsFeature,
    /// It is malformed in another way.
    #[error(
        "it is malformed: write redis://user:password@host:port/db, and %40 for a @, %2F for a / and so on within user and password"
    )]
    Malformed,
}
