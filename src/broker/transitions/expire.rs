use std::sync::LazyLock;

use super::super::reply::Parts;
use super::super::script::Script;
use super::super::{BrokerError, Query, Queue};
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
}

impl ExpiredTask {
    /// What is left of a reply: id and kind by turns.
    pub(super) fn parse_all(mut parts: Parts) -> Option<Vec<Self>> {
        (0..parts.len() / 2)
            .map(|_| {
                Some(Self {
                    id: parts.text()?,
                    kind: parts.text()?,
                })
            })
            .collect()
    }
}

/// pending, scheduled, retry → archived, at most 200 of what is past its deadline.
pub(crate) async fn expire(redis: &impl Query, queue: &Queue) -> Result<Expired, BrokerError> {
    let mut call = SCRIPT.on(&queue.base);
    call.arg(defaults::SCRIPT_TASKS);
    let reply = Parts::of(call.run(redis).await?);
    reply.and_then(parse).ok_or_else(|| SCRIPT.unexpected())
}

fn parse(mut parts: Parts) -> Option<Expired> {
    Some(Expired {
        more: parts.integer()? == defaults::SCRIPT_TASKS as i64,
        malformed: parts.texts()?,
        archived: ExpiredTask::parse_all(parts.parts()?)?,
    })
}
