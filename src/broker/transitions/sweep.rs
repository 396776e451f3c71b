use std::sync::LazyLock;
use std::time::Duration;

use crate::broker::connection::{BrokerError, Query};
use crate::broker::keys::Queue;
use crate::broker::reply::Text;
use crate::broker::script::Script;
use crate::broker::transitions::hooks::DroppedHook;
use crate::defaults;

static SCRIPT: LazyLock<Script> =
    LazyLock::new(|| Script::new("sweep", include_str!("../../../lua/sweep.lua")));

/// What the archive keeps.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SweepRequest {
    pub(crate) archive_tasks: usize,
    pub(crate) archive_age: Duration,
    /// For how long a task whose hook is owed and has a server is kept beyond these limits.
    pub(crate) keep_for_hooks: Duration,
    /// How many of the oldest archived tasks to pass over: those spared by the calls before.
    pub(crate) pass_over: usize,
    /// How many bytes of the oldest tasks go before their time.
    pub(crate) shed: KeptBytes,
}

/// How much memory tasks take that have ended and are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct KeptBytes {
    pub(crate) completed: u64,
    pub(crate) archived: u64,
}

/// What a sweep call did.
#[derive(Debug)]
pub(crate) struct Swept {
    pub(crate) completed: usize,
    pub(crate) archived: usize,
    /// The hooks that were owed for those removed.
    pub(crate) hooks_dropped: Vec<DroppedHook>,
    /// Archived tasks spared because their hook is owed.
    pub(crate) spared: usize,
    pub(crate) more: bool,
    /// Of those removed, the ones that went before their time.
    pub(crate) shed: usize,
    /// How many bytes these had.
    pub(crate) freed: KeptBytes,
}

/// completed, archived → gone, at most 200 of each.
pub(crate) async fn sweep(
    redis: &impl Query,
    queue: &Queue,
    request: SweepRequest,
) -> Result<Swept, BrokerError> {
    let mut call = SCRIPT.on(&queue.base);
    call.arg(defaults::SCRIPT_TASKS)
        .arg(request.archive_tasks)
        .arg(request.archive_age.as_millis() as u64)
        .arg(request.keep_for_hooks.as_millis() as u64)
        .arg(request.pass_over)
        .arg(request.shed.completed)
        .arg(request.shed.archived);
    let reply = call.read(redis).await?;
    let (completed, archived, hooks_dropped, spared, more, shed, freed) = reply;
    let (of_completed, of_archived) = freed;
    let hooks_dropped: Vec<(Text, Text)> = hooks_dropped;
    Ok(Swept {
        completed,
        archived,
        hooks_dropped: hooks_dropped.into_iter().map(DroppedHook::from).collect(),
        spared,
        more,
        shed,
        freed: KeptBytes {
            completed: of_completed,
            archived: of_archived,
        },
    })
}
