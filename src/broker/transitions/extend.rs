use std::sync::LazyLock;
use std::time::Duration;

use redis::{FromRedisValue, ParsingError, Value};

use crate::broker::connection::{BrokerError, Query};
use crate::broker::keys::Queue;
use crate::broker::script::Script;
use crate::broker::transitions::lease::LeasedId;

static SCRIPT: LazyLock<Script> =
    LazyLock::new(|| Script::new("extend", include_str!("../../../lua/extend.lua")));

/// What Redis says to the extension of one lease.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Extended {
    Done,
    /// Extended, and somebody has asked for the task to be cancelled.
    Cancelled,
    /// The lease is no longer this holder's.
    Lost,
}

/// active → active, with a later expiry.
pub(crate) async fn extend(
    redis: &impl Query,
    queue: &Queue,
    lease: Duration,
    tasks: &[LeasedId],
) -> Result<Vec<Extended>, BrokerError> {
    if tasks.is_empty() {
        return Ok(Vec::new());
    }
    let mut call = SCRIPT.on(&queue.base);
    call.arg(lease.as_millis() as u64);
    for task in tasks {
        call.arg(&*task.id).arg(task.holder.as_str());
    }
    call.read_each(redis, tasks.len()).await
}

impl FromRedisValue for Extended {
    fn from_redis_value(reply: Value) -> Result<Self, ParsingError> {
        match reply {
            Value::Int(1) => Ok(Self::Done),
            Value::Int(2) => Ok(Self::Cancelled),
            Value::Int(0 | -1) => Ok(Self::Lost),
            _ => Err("no word for an extension".into()),
        }
    }
}
