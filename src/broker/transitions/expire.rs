use std::sync::LazyLock;

use crate::broker::connection::{BrokerError, Query};
use crate::broker::keys::Queue;
use crate::broker::reply::{Text, texts};
use crate::broker::script::Script;
use crate::defaults;

static SCRIPT: LazyLock<Script> =
    LazyLock::new(|| Script::new("expire", include_str!("../../../lua/expire.lua")));

/// What an expire call did.
#[derive(Debug)]
pub(crate) struct Expired {
    /// More may be past their deadline.
    pub(crate) more: bool,
    /// Ids whose records were set aside.
    pub(crate) malformed: Vec<String>,
    /// What was archived.
    pub(crate) archived: Vec<ExpiredTask>,
}

/// A task that was archived, because its deadline had passed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ExpiredTask {
    pub(crate) id: String,
    pub(crate) kind: String,
    /// That its deadline has passed, and what it failed with before.
    pub(crate) error: String,
}

impl From<(Text, Text, Text)> for ExpiredTask {
    fn from((Text(id), Text(kind), Text(error)): (Text, Text, Text)) -> Self {
        Self { id, kind, error }
    }
}

/// pending, scheduled, retry → archived, at most 100 of what is past its deadline.
pub(crate) async fn expire(redis: &impl Query, queue: &Queue) -> Result<Expired, BrokerError> {
    let mut call = SCRIPT.on(&queue.base);
    call.arg(defaults::SCRIPT_RECORDS);
    let reply: (usize, Vec<Text>, Vec<(Text, Text, Text)>) = call.read(redis).await?;
    let (looked_at, malformed, archived) = reply;
    Ok(Expired {
        more: looked_at == defaults::SCRIPT_RECORDS,
        malformed: texts(malformed),
        archived: archived.into_iter().map(ExpiredTask::from).collect(),
    })
}
