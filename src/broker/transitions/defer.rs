use std::sync::LazyLock;
use std::time::Duration;

use super::super::script::Script;
use super::super::{BrokerError, Query, Queue};
use super::LeasedId;
use super::settle::{By, Settled, settle};
use super::span::delay_ms;

static SCRIPT: LazyLock<Script> =
    LazyLock::new(|| Script::new("defer", include_str!("../../../lua/defer.lua")));

/// A task that is put off without having failed.
#[derive(Debug, Clone)]
pub(crate) struct Deferral {
    pub(crate) task: LeasedId,
    pub(crate) delay: Duration,
    /// Whether its handler was called.
    pub(crate) started: bool,
}

/// active → scheduled.
pub(crate) async fn defer(
    redis: &impl Query,
    queue: &Queue,
    tasks: &[Deferral],
) -> Result<Vec<Settled>, BrokerError> {
    let mut call = SCRIPT.on(&queue.base);
    call.arg(By::Holder.arg());
    for deferral in tasks {
        call.arg(&*deferral.task.id)
            .arg(deferral.task.holder.as_str())
            .arg(delay_ms(deferral.delay))
            .arg(u8::from(deferral.started));
    }
    settle(&SCRIPT, &call, redis, tasks.len()).await
}
