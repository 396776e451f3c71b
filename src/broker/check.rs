use futures::future::try_join_all;
use futures::stream::{self, StreamExt};
use redis::Value;

use crate::broker::connection::{BrokerError, Query};
use crate::broker::keys::{Keys, Queue};

/// The oldest Redis whose scripts work as ours need.
const OLDEST: (u32, u32) = (7, 0);

/// How many queues are checked at the same time.
const QUEUES_AT_ONCE: usize = 100;

/// The state keys of a queue and the type each must have.
const TYPES: [(&str, &str); 9] = [
    ("pending", "zset"),
    ("active", "zset"),
    ("scheduled", "zset"),
    ("retry", "zset"),
    ("archived", "zset"),
    ("leases", "hash"),
    ("meta", "hash"),
    ("stats", "hash"),
    ("wake", "list"),
];

/// What a look at Redis before work begins can find.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SetupProblem {
    /// Too old: refused.
    #[error("Redis {0} is too old: windlass needs 7.0 or later (or Valkey)")]
    TooOld(String),
    /// Keys may be evicted: tasks and locks would vanish.
    #[error(
        "Redis' maxmemory-policy is {0}: it will throw tasks away when memory is full; set it to noeviction"
    )]
    Eviction(String),
    /// Nothing is written to disk.
    #[error("Redis writes nothing to disk (no appendonly, no save): a restart loses all tasks")]
    NoPersistence,
    /// A key holds something that windlass did not write: refused.
    #[error(
        "the key {key} is a {found} where windlass needs a {needed}: something else writes under this prefix"
    )]
    #[non_exhaustive]
    WrongType {
        /// The key.
        key: String,
        /// The type found.
        found: String,
        /// The type needed.
        needed: &'static str,
    },
    /// The queue has another layout: refused.
    #[error(
        "queue {queue} has schema {found}; this version knows schema 1: use the matching windlass version"
    )]
    #[non_exhaustive]
    Schema {
        /// The queue.
        queue: String,
        /// The number found.
        found: String,
    },
    /// Nothing can be said on a channel.
    #[error(
        "the Redis user may not publish on the channel {channel}: {consequence}; grant it +publish, +subscribe and &{channel}"
    )]
    #[non_exhaustive]
    Channel {
        /// The channel, or what the names of several begin with, and `*`.
        channel: String,
        /// What comes of that.
        consequence: &'static str,
    },
    /// A check was skipped, because Redis denied it.
    #[error("could not check {what}, because Redis denied {command}")]
    #[non_exhaustive]
    Skipped {
        /// What was not checked.
        what: &'static str,
        /// The command that was denied.
        command: &'static str,
    },
}

impl SetupProblem {
    /// Whether a server must not start.
    pub(crate) fn refuses(&self) -> bool {
        matches!(
            self,
            Self::TooOld(_) | Self::WrongType { .. } | Self::Schema { .. }
        )
    }
}

/// What a look at Redis has shown.
pub(crate) struct RedisCheck {
    /// `None` where it may not be asked.
    pub(crate) version: Option<String>,
    pub(crate) findings: Vec<SetupProblem>,
}

/// Looks at Redis and at the queues' keys; changes nothing.
pub(crate) async fn check_redis(
    redis: &impl Query,
    keys: &Keys,
    queues: &[Queue],
) -> Result<RedisCheck, BrokerError> {
    let mut findings = Vec::new();
    let version = check_settings(redis, &mut findings).await?;
    findings.extend(check_control(redis, keys).await?);
    let checks = queues
        .iter()
        .map(|queue| check_queue(redis, queue))
        .collect::<Vec<_>>();
    let mut checks = stream::iter(checks).buffered(QUEUES_AT_ONCE);
    while let Some(found) = checks.next().await {
        findings.extend(found?);
    }
    findings.dedup();
    Ok(RedisCheck { version, findings })
}

/// Returns its version.
async fn check_settings(
    redis: &impl Query,
    findings: &mut Vec<SetupProblem>,
) -> Result<Option<String>, BrokerError> {
    let Some(info) = allowed(redis.query(&redis::cmd("INFO")).await)? else {
        findings.push(SetupProblem::Skipped {
            what: "the version, the eviction policy and persistence",
            command: "INFO",
        });
        return Ok(None);
    };
    let info = text(info);
    let field = |name: &str| {
        info.lines()
            .find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))
            .map(str::trim)
    };
    // Valkey reports the Redis version that it is compatible with here.
    let version = field("redis_version");
    if let Some(version) = version {
        let mut numbers = version.split('.').map(|n| n.parse().unwrap_or(0));
        if (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0)) < OLDEST {
            findings.push(SetupProblem::TooOld(version.to_owned()));
        }
    }
    if let Some(policy) = field("maxmemory_policy").filter(|&policy| policy != "noeviction") {
        findings.push(SetupProblem::Eviction(policy.to_owned()));
    }
    if field("aof_enabled") == Some("0") {
        match allowed(
            redis
                .query(redis::cmd("CONFIG").arg("GET").arg("save"))
                .await,
        )? {
            None => findings.push(SetupProblem::Skipped {
                what: "persistence",
                command: "CONFIG GET",
            }),
            Some(reply) => {
                let pair: Vec<String> = redis::from_redis_value(reply).unwrap_or_default();
                if pair.get(1).is_some_and(String::is_empty) {
                    findings.push(SetupProblem::NoPersistence);
                }
            }
        }
    }
    Ok(version.map(str::to_owned))
}

/// Whether cancels can be told to servers.
pub(crate) async fn check_control(
    redis: &impl Query,
    keys: &Keys,
) -> Result<Option<SetupProblem>, BrokerError> {
    let channel = keys.control("");
    let finding = SetupProblem::Channel {
        channel: format!("{channel}*"),
        consequence: "a running handler hears of its cancel only at its server's next heartbeat",
    };
    Ok((!may_publish(redis, &channel).await?).then_some(finding))
}

/// Says nothing on a channel: those who listen there wait for an id.
async fn may_publish(redis: &impl Query, channel: &str) -> Result<bool, BrokerError> {
    let publish = redis
        .query(redis::cmd("PUBLISH").arg(channel).arg(""))
        .await;
    Ok(allowed(publish)?.is_some())
}

async fn check_queue(redis: &impl Query, queue: &Queue) -> Result<Vec<SetupProblem>, BrokerError> {
    let mut findings = check_keys(redis, queue).await?;
    let channel = queue.ended();
    if !may_publish(redis, &channel).await? {
        findings.push(SetupProblem::Channel {
            channel,
            consequence: "who waits for a task hears of its end up to 10 s late",
        });
    }
    Ok(findings)
}

async fn check_keys(redis: &impl Query, queue: &Queue) -> Result<Vec<SetupProblem>, BrokerError> {
    let mut findings = Vec::new();
    let keys = TYPES.map(|(name, needed)| (queue.key(name), needed));
    let types = keys
        .iter()
        .map(|(key, _)| async move { allowed(redis.query(redis::cmd("TYPE").arg(key)).await) });
    let types = try_join_all(types).await?;
    for ((key, needed), found) in keys.into_iter().zip(types) {
        let Some(found) = found.map(text) else {
            findings.push(SetupProblem::Skipped {
                what: "the types of keys",
                command: "TYPE",
            });
            return Ok(findings);
        };
        if found != "none" && found != needed {
            findings.push(SetupProblem::WrongType { key, found, needed });
        }
    }
    if findings.iter().any(SetupProblem::refuses) {
        return Ok(findings);
    }
    let schema = redis
        .query(redis::cmd("HGET").arg(queue.key("meta")).arg("schema"))
        .await;
    match allowed(schema)?.map(text) {
        Some(found) if !found.is_empty() && found != "1" => findings.push(SetupProblem::Schema {
            queue: queue.name.to_string(),
            found,
        }),
        _ => {}
    }
    Ok(findings)
}

/// `None` where Redis denies or lacks the command, which is no reason not to start.
fn allowed(reply: Result<Value, BrokerError>) -> Result<Option<Value>, BrokerError> {
    match reply {
        Ok(value) => Ok(Some(value)),
        Err(BrokerError::Denied(_) | BrokerError::Refused(_)) => Ok(None),
        Err(error) => Err(error),
    }
}

fn text(value: Value) -> String {
    match value {
        Value::BulkString(bytes) => String::from_utf8_lossy(&bytes).into_owned(),
        Value::SimpleString(text) => text,
        Value::VerbatimString { text, .. } => text,
        _ => String::new(),
    }
}
