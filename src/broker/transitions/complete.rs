use std::sync::LazyLock;

use super::super::script::{BASE, Script};
use super::super::{BrokerError, Query, Queue};
use super::LeasedId;
use super::settle::{Settled, settle};

static SCRIPT: LazyLock<Script> = LazyLock::new(|| {
    Script::new(
        "complete",
        include_str!("../../../lua/complete.lua"),
        &[BASE],
    )
});

/// active → gone.
pub(crate) async fn complete<'a>(
    redis: &impl Query,
    queue: &Queue,
    tasks: impl ExactSizeIterator<Item = &'a LeasedId>,
) -> Result<Vec<Settled>, BrokerError> {
    let count = tasks.len();
    let mut call = SCRIPT.on(&queue.base);
    for task in tasks {
        call.arg(&*task.id).arg(task.holder.as_str());
    }
    settle(&SCRIPT, &call, redis, count).await
}
