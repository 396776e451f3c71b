use std::sync::LazyLock;
use std::time::Duration;

use super::super::script::Script;
use super::super::{BrokerError, Query, Queue};
use super::LeasedId;
use super::settle::{Settled, settle};

static SCRIPT: LazyLock<Script> =
    LazyLock::new(|| Script::new("extend", include_str!("../../../lua/extend.lua")));

/// active → active, with a later expiry. What is not `Done` is lost.
pub(crate) async fn extend(
    redis: &impl Query,
    queue: &Queue,
    lease: Duration,
    tasks: &[LeasedId],
) -> Result<Vec<Settled>, BrokerError> {
    let mut call = SCRIPT.on(&queue.base);
    call.arg(lease.as_millis() as u64);
    for task in tasks {
        call.arg(&*task.id).arg(task.holder.as_str());
    }
    settle(&SCRIPT, &call, redis, tasks.len()).await
}
