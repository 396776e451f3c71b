use std::error::Error as StdError;
use std::io::{self, ErrorKind};
use std::sync::Arc;

use redis::RedisError;
use thiserror::Error;
use tokio::time::error::Elapsed;

/// Why a connection could not be made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ConnectProblem {
    /// Nothing answers there.
    #[error("nothing listens there; is Redis running, and is the address right?")]
    Refused,
    /// The host's name could not be looked up.
    #[error(
        "its name could not be looked up; is it spelled right, and does the system's resolver know it?"
    )]
    Name,
    /// The password or user was refused, or is missing.
    #[error("it refused the login; check user and password")]
    Login,
    /// All connections that Redis allows are taken.
    #[error(
        "Redis has as many clients as its maxclients allows; raise that, or find out who holds so many"
    )]
    TooManyClients,
    /// Redis said why it does not want this connection, and closed it.
    #[error("Redis turned the connection away; the cause says why")]
    TurnedAway,
    /// The two ends could not agree on a secure connection.
    #[error(
        "the TLS handshake failed, and nothing was sent; the cause says why: check the server's certificate, its name and authority, and the TLS versions of both ends"
    )]
    Tls,
    /// Something answers, but not like Redis.
    #[error("what listens there does not answer like Redis; if it speaks TLS, use rediss://")]
    NotRedis,
    /// Nothing came back in time.
    #[error(
        "no answer in time; check the address, the network and firewalls, and whether it wants TLS (rediss://)"
    )]
    Timeout,
    /// Redis answered that it cannot serve yet.
    #[error("it cannot serve yet")]
    NotReady,
    /// Another failure of the network or the system.
    #[error("the connection failed; the cause says why")]
    Other,
}

/// Why there is no connection, and what says so.
#[derive(Debug)]
pub(super) struct Failure {
    pub(super) problem: ConnectProblem,
    pub(super) source: Arc<dyn StdError + Send + Sync>,
}

impl Failure {
    pub(super) fn new(
        problem: ConnectProblem,
        source: impl StdError + Send + Sync + 'static,
    ) -> Self {
        let source = Arc::new(source);
        Self { problem, source }
    }

    /// What Redis said instead of letting us in.
    pub(super) fn said(error: RedisError) -> Self {
        Self::new(Self::problem_of(&error), error)
    }

    pub(super) fn problem_of(error: &RedisError) -> ConnectProblem {
        let detail = error.detail().unwrap_or_default();
        match error.code() {
            Some("NOAUTH" | "WRONGPASS" | "NOPERM") => ConnectProblem::Login,
            Some("LOADING" | "MASTERDOWN" | "BUSY" | "CLUSTERDOWN") => ConnectProblem::NotReady,
            Some("DENIED") => ConnectProblem::TurnedAway,
            _ if detail.contains("max number of clients") => ConnectProblem::TooManyClients,
            // A password where none is asked for.
            _ if detail.contains("AUTH") => ConnectProblem::Login,
            _ => ConnectProblem::Other,
        }
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        let problem = match error.kind() {
            // A socket's file that is not there is a Redis that does not run.
            ErrorKind::ConnectionRefused | ErrorKind::NotFound => ConnectProblem::Refused,
            ErrorKind::TimedOut | ErrorKind::WouldBlock => ConnectProblem::Timeout,
            _ if is_tls(&error) => ConnectProblem::Tls,
            ErrorKind::BrokenPipe
            | ErrorKind::ConnectionReset
            | ErrorKind::ConnectionAborted
            | ErrorKind::UnexpectedEof
            | ErrorKind::NotConnected
            | ErrorKind::InvalidData => ConnectProblem::NotRedis,
            _ => ConnectProblem::Other,
        };
        Self::new(problem, error)
    }
}

impl From<Elapsed> for Failure {
    fn from(elapsed: Elapsed) -> Self {
        Self::new(ConnectProblem::Timeout, elapsed)
    }
}

/// With TLS 1.3 the other end may refuse our certificate only after the handshake.
#[cfg(feature = "tls")]
fn is_tls(error: &io::Error) -> bool {
    error
        .get_ref()
        .is_some_and(|cause| cause.is::<rustls::Error>())
}

#[cfg(not(feature = "tls"))]
fn is_tls(_: &io::Error) -> bool {
    false
}

#[cfg(test)]
mod tests {
    use redis::{Value, parse_redis_value};

    use super::*;

    #[test]
    fn every_word_of_redis_is_named() {
        use ConnectProblem::{Login, NotReady, Other, TooManyClients, TurnedAway};
        for (said, problem) in [
            ("NOAUTH Authentication required.", Login),
            ("WRONGPASS invalid username-password pair", Login),
            ("NOPERM no permissions", Login),
            ("LOADING Redis is loading", NotReady),
            ("MASTERDOWN Link with MASTER is down", NotReady),
            ("BUSY Redis is busy", NotReady),
            ("CLUSTERDOWN Hash slot not served", NotReady),
            ("ERR max number of clients reached", TooManyClients),
            (
                "ERR max number of clients + cluster connections reached",
                TooManyClients,
            ),
            ("DENIED Redis is running in protected mode", TurnedAway),
            (
                "ERR AUTH <password> called without any password configured",
                Login,
            ),
            ("ERR DB index is out of range", Other),
        ] {
            let reply = format!("-{said}\r\n");
            let reply = parse_redis_value(reply.as_bytes()).and_then(Value::extract_error);
            let failure = Failure::said(reply.expect_err(said));
            assert_eq!(failure.problem, problem, "{said}");
        }
    }

    #[test]
    fn every_failure_of_the_system_is_named() {
        use ConnectProblem::{NotRedis, Other, Refused, Timeout};
        for (kind, problem) in [
            (ErrorKind::ConnectionRefused, Refused),
            (ErrorKind::NotFound, Refused),
            (ErrorKind::TimedOut, Timeout),
            (ErrorKind::ConnectionReset, NotRedis),
            (ErrorKind::UnexpectedEof, NotRedis),
            (ErrorKind::InvalidData, NotRedis),
            (ErrorKind::HostUnreachable, Other),
            (ErrorKind::PermissionDenied, Other),
        ] {
            assert_eq!(
                Failure::from(io::Error::from(kind)).problem,
                problem,
                "{kind}"
            );
        }
    }
}
