use std::error::Error as StdError;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use redis::{ErrorKind, RedisError};
use thiserror::Error;

use crate::broker::connection::problem::ConnectProblem;

/// Shared, because all who wait for one connection get its error.
type Source = Arc<dyn StdError + Send + Sync>;

/// Why Redis could not do what was asked.
#[derive(Debug, Clone, Error)]
#[non_exhaustive]
pub enum BrokerError {
    /// No connection could be made.
    #[error("could not connect to Redis at {address}: {problem}")]
    #[non_exhaustive]
    Connect {
        /// Where Redis was looked for.
        address: String,
        /// What happened, and what to do.
        problem: ConnectProblem,
        /// The underlying error.
        #[source]
        source: Source,
    },
    /// Redis did not answer in time; the command may still have run.
    #[error("Redis did not answer within {0:?}")]
    Timeout(Duration),
    /// The connection broke before the answer came; the command may still have run.
    #[error("the connection to Redis was lost")]
    Disconnected(#[source] Source),
    /// The command was never sent, because others had taken all connections.
    #[error(
        "nothing was sent: the calls before took all connections, and none of them was done within {0:?}"
    )]
    Busy(Duration),
    /// The command was never sent.
    #[error(
        "nothing was sent: Redis did not answer the calls before in time, or the runtime that was to send it has ended"
    )]
    NotSent,
    /// Redis cannot serve now, but will: it loads its data, fails over, or runs a long script.
    #[error("Redis cannot serve this now ({code})")]
    #[non_exhaustive]
    Unavailable {
        /// The first word of Redis' error, such as `LOADING` or `READONLY`.
        code: String,
        /// The underlying error.
        #[source]
        source: Source,
    },
    /// Redis has reached its `maxmemory`: nothing new can be stored until something has gone.
    #[error(
        "Redis is out of memory{}: let workers drain it, keep fewer tasks that have ended, or raise maxmemory",
        .queue_has.as_ref().map_or(String::new(), |what| format!(" (the queue has {what})"))
    )]
    OutOfMemory {
        /// Of an enqueue: how much the queue has, in words.
        queue_has: Option<String>,
        /// The underlying error.
        #[source]
        source: Source,
    },
    /// The Redis user lacks a permission.
    #[error(
        "the Redis user may not do this: check the login, or grant the command or key that the cause names"
    )]
    Denied(#[source] Source),
    /// The queue was written by a version of windlass with another layout.
    #[error("the queue's data has another layout: {0}; use the matching windlass version")]
    Schema(String),
    /// A key of windlass holds another type of value.
    #[error(
        "a key of windlass holds a value of another type: something else writes under this prefix"
    )]
    WrongType(#[source] Source),
    /// Redis refused the command for another reason.
    #[error("Redis refused the command")]
    Refused(#[source] Source),
    /// A script answered something that this version does not understand.
    #[error("the script {script} answered something unexpected")]
    #[non_exhaustive]
    Reply {
        /// The script's name.
        script: &'static str,
    },
}

/// What to do about an error on a held connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fault {
    /// Drop the connection, wait, connect again.
    Reconnect,
    /// Keep the connection, wait, repeat.
    Wait,
    /// Repeating will not help.
    Permanent,
}

impl BrokerError {
    /// The one classifier of what Redis and the network can answer.
    pub(crate) fn classify(error: RedisError, timeout: Duration) -> Self {
        if error.is_timeout() {
            return Self::Timeout(timeout);
        }
        let code = error.code().unwrap_or_default().to_owned();
        match code.as_str() {
            "READONLY" | "LOADING" | "MASTERDOWN" | "BUSY" | "MISCONF" | "NOREPLICAS"
            | "TRYAGAIN" | "CLUSTERDOWN" => Self::Unavailable {
                code,
                source: Arc::new(error),
            },
            "OOM" => Self::OutOfMemory {
                queue_has: None,
                source: Arc::new(error),
            },
            "NOPERM" | "NOAUTH" | "WRONGPASS" => Self::Denied(Arc::new(error)),
            "WRONGTYPE" => Self::WrongType(Arc::new(error)),
            "WINDLASSSCHEMA" => {
                let detail = error.detail().unwrap_or_default();
                // Redis adds where in which script.
                let told = detail.split(" script: ").next().unwrap_or_default();
                Self::Schema(told.to_owned())
            }
            _ => match error.kind() {
                ErrorKind::Io | ErrorKind::Parse => Self::Disconnected(Arc::new(error)),
                ErrorKind::AuthenticationFailed => Self::Denied(Arc::new(error)),
                _ => Self::Refused(Arc::new(error)),
            },
        }
    }

    /// The connection ended in a way that no error tells of.
    pub(crate) fn disconnected(how: &'static str) -> Self {
        Self::Disconnected(Arc::new(io::Error::other(how)))
    }

    /// Whether Redis itself said so: nothing is wrong with the connection.
    pub(crate) fn is_answer(&self) -> bool {
        matches!(self, Self::Unavailable { .. })
    }

    pub(crate) fn fault(&self) -> Fault {
        match self {
            Self::Connect { .. } | Self::Timeout(_) | Self::Disconnected(_) | Self::NotSent => {
                Fault::Reconnect
            }
            Self::Unavailable { code, .. } => match code.as_str() {
                "READONLY" | "LOADING" | "MASTERDOWN" => Fault::Reconnect,
                _ => Fault::Wait,
            },
            Self::OutOfMemory { .. } | Self::Busy(_) => Fault::Wait,
            _ => Fault::Permanent,
        }
    }

    /// Whether the command may have run although this error came back.
    pub(crate) fn outcome_unknown(&self) -> bool {
        matches!(
            self,
            Self::Timeout(_) | Self::Disconnected(_) | Self::Reply { .. }
        )
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use redis::{RedisError, Value, parse_redis_value};

    use super::*;

    const TIMEOUT: Duration = Duration::from_secs(1);

    /// The error of a reply of Redis.
    fn answered(code: &str) -> RedisError {
        let reply = format!("-{code} some words\r\n");
        let reply = parse_redis_value(reply.as_bytes()).and_then(Value::extract_error);
        reply.expect_err(code)
    }

    fn io(kind: io::ErrorKind) -> RedisError {
        io::Error::from(kind).into()
    }

    #[test]
    fn every_error_has_its_name_and_what_to_do_about_it() {
        use Fault::{Permanent, Reconnect, Wait};
        let table = [
            ("READONLY", "Unavailable", Reconnect),
            ("LOADING", "Unavailable", Reconnect),
            ("MASTERDOWN", "Unavailable", Reconnect),
            ("BUSY", "Unavailable", Wait),
            ("MISCONF", "Unavailable", Wait),
            ("NOREPLICAS", "Unavailable", Wait),
            ("TRYAGAIN", "Unavailable", Wait),
            ("CLUSTERDOWN", "Unavailable", Wait),
            ("OOM", "OutOfMemory", Wait),
            ("NOPERM", "Denied", Permanent),
            ("NOAUTH", "Denied", Permanent),
            ("WRONGPASS", "Denied", Permanent),
            ("WRONGTYPE", "WrongType", Permanent),
            ("WINDLASSSCHEMA", "Schema", Permanent),
            ("NOSCRIPT", "Refused", Permanent),
            ("CROSSSLOT", "Refused", Permanent),
            ("MOVED", "Refused", Permanent),
            ("ERR", "Refused", Permanent),
            ("SOMETHINGNEW", "Refused", Permanent),
        ];
        for (code, name, fault) in table {
            let error = BrokerError::classify(answered(code), TIMEOUT);
            assert!(format!("{error:?}").starts_with(name), "{code}: {error:?}");
            assert_eq!(error.fault(), fault, "{code}");
            // Redis has answered, so that it is known to have done nothing.
            assert!(!error.outcome_unknown(), "{code}");
        }
    }

    #[test]
    fn without_an_answer_the_outcome_is_unknown_and_the_connection_is_replaced() {
        use io::ErrorKind::{BrokenPipe, ConnectionReset, TimedOut, UnexpectedEof};
        let garbage = parse_redis_value(b"HTTP/1.1 400\r\n").expect_err("no reply");
        let table = [
            (io(TimedOut), "Timeout"),
            (io(BrokenPipe), "Disconnected"),
            (io(ConnectionReset), "Disconnected"),
            (io(UnexpectedEof), "Disconnected"),
            (garbage, "Disconnected"),
        ];
        for (error, name) in table {
            let error = BrokerError::classify(error, TIMEOUT);
            assert!(format!("{error:?}").starts_with(name), "{error:?}");
            assert_eq!(error.fault(), Fault::Reconnect, "{error:?}");
            assert!(error.outcome_unknown(), "{error:?}");
        }
    }
}
