use std::sync::LazyLock;

use crate::broker::connection::{BrokerError, Query};
use crate::broker::keys::Queue;
use crate::broker::script::Script;
use crate::broker::transitions::lease::LeasedId;

static SCRIPT: LazyLock<Script> =
    LazyLock::new(|| Script::new("progress", include_str!("../../../lua/progress.lua")));

/// Notes how far an active task's handler has come. Returns whether the task is still this holder's.
pub(crate) async fn progress(
    redis: &impl Query,
    queue: &Queue,
    task: &LeasedId,
    note: &str,
) -> Result<bool, BrokerError> {
    let mut call = SCRIPT.on(&queue.base);
    call.arg(&*task.id).arg(task.holder.as_str()).arg(note);
    Ok(call.read::<i64>(redis).await? == 1)
}
