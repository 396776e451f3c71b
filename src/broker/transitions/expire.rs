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
    /// Ids that were archived.
    pub(crate) archived: Vec<String>,
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
        archived: parts.texts()?,
    })
}
