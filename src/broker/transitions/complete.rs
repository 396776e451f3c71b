use std::sync::LazyLock;

use super::super::script::Script;
use super::super::{BrokerError, Query, Queue};
use super::LeasedId;
use super::settle::{Settled, settle};

static SCRIPT: LazyLock<Script> =
    LazyLock::new(|| Script::new("complete", include_str!("../../../lua/complete.lua")));

/// A task that is done.
#[derive(Debug, Clone)]
pub(crate) struct Completion {
    pub(crate) task: LeasedId,
    /// From the claim: its record has a lock or a retention.
    pub(crate) has_end_effects: bool,
    /// Kept for the task's retention.
    pub(crate) result: Option<Vec<u8>>,
}

/// active → gone or completed.
pub(crate) async fn complete(
    redis: &impl Query,
    queue: &Queue,
    tasks: &[Completion],
) -> Result<Vec<Settled>, BrokerError> {
    let mut call = SCRIPT.on(&queue.base);
    for completion in tasks {
        call.arg(&*completion.task.id)
            .arg(completion.task.holder.as_str())
            .arg(u8::from(completion.has_end_effects))
            .arg(completion.result.as_deref().unwrap_or_default());
    }
    settle(&SCRIPT, &call, redis, tasks.len()).await
}
