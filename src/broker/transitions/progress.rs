use std::sync::LazyLock;

use redis::Value;

use super::super::script::Script;
use super::super::{BrokerError, Query, Queue};
use super::{LeasedId, Settled};

static SCRIPT: LazyLock<Script> =
    LazyLock::new(|| Script::new("progress", include_str!("../../../lua/progress.lua")));

/// Notes how far an active task's handler has come.
pub(crate) async fn progress(
    redis: &impl Query,
    queue: &Queue,
    task: &LeasedId,
    note: &str,
) -> Result<Settled, BrokerError> {
    let mut call = SCRIPT.on(&queue.base);
    call.arg(&*task.id).arg(task.holder.as_str()).arg(note);
    match call.run(redis).await? {
        Value::Int(1) => Ok(Settled::Done),
        Value::Int(0) => Ok(Settled::Gone),
        Value::Int(-1) => Ok(Settled::Stale),
        _ => Err(SCRIPT.unexpected()),
    }
}
