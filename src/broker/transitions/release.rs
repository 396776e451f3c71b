use std::sync::LazyLock;

use super::super::script::Script;
use super::super::{BrokerError, Query, Queue};
use super::LeasedId;
use super::settle::{By, Settled, settle};

static SCRIPT: LazyLock<Script> =
    LazyLock::new(|| Script::new("release", include_str!("../../../lua/release.lua")));

/// A task that is handed back.
#[derive(Debug, Clone)]
pub(crate) struct Releasal {
    pub(crate) task: LeasedId,
    /// Whether its handler was called.
    pub(crate) started: bool,
}

/// active → pending, at its old place.
pub(crate) async fn release(
    redis: &impl Query,
    queue: &Queue,
    tasks: &[Releasal],
) -> Result<Vec<Settled>, BrokerError> {
    let mut call = SCRIPT.on(&queue.base);
    call.arg(By::Holder.arg());
    for releasal in tasks {
        call.arg(&*releasal.task.id)
            .arg(releasal.task.holder.as_str())
            .arg(u8::from(releasal.started));
    }
    settle(&SCRIPT, &call, redis, tasks.len()).await
}
