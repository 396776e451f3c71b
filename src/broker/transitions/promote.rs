use std::sync::LazyLock;
use std::time::Duration;

use crate::broker::connection::{BrokerError, Query};
use crate::broker::keys::Queue;
use crate::broker::reply::{Decimal, Text, texts};
use crate::broker::script::Script;
use crate::defaults;

static SCRIPT: LazyLock<Script> =
    LazyLock::new(|| Script::new("promote", include_str!("../../../lua/promote.lua")));

/// What a promote call did.
#[derive(Debug)]
pub(crate) struct Promoted {
    /// Tasks that became pending.
    pub(crate) moved: usize,
    /// More are due already.
    pub(crate) more: bool,
    /// Deadlines of waiting tasks have passed.
    pub(crate) deadlines_passed: bool,
    /// How long until the next one is due.
    pub(crate) next_due: Option<Duration>,
    /// Ids whose records were set aside.
    pub(crate) malformed: Vec<String>,
}

/// scheduled and retry → pending, at most 200 of what is due.
pub(crate) async fn promote(redis: &impl Query, queue: &Queue) -> Result<Promoted, BrokerError> {
    let mut call = SCRIPT.on(&queue.base);
    call.arg(defaults::SCRIPT_TASKS);
    let reply: (usize, bool, bool, u64, Decimal, Vec<Text>) = call.read(redis).await?;
    let (moved, more, deadlines_passed, now, Decimal(next_due), malformed) = reply;
    Ok(Promoted {
        moved,
        more,
        deadlines_passed,
        next_due: next_due.map(|due| Duration::from_millis(due.saturating_sub(now))),
        malformed: texts(malformed),
    })
}
