use std::sync::LazyLock;
use std::time::Duration;

use super::super::reply::Parts;
use super::super::script::Script;
use super::super::{BrokerError, Query, Queue};
use super::{LeaseHolder, LeasedId, Record};
use crate::defaults;

static SCRIPT: LazyLock<Script> =
    LazyLock::new(|| Script::new("tick", include_str!("../../../lua/tick.lua")));

/// How a recoverer looks.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TickRequest {
    pub(crate) scan: Duration,
    pub(crate) grace: Duration,
    pub(crate) skew: Duration,
}

/// What a tick found.
#[derive(Debug)]
pub(crate) struct Tick {
    /// How long nobody's lease may be taken yet.
    pub(crate) grace_left: Duration,
    /// A dead-letter hook is owed now.
    pub(crate) hook_owed: bool,
    /// Ids whose records were set aside.
    pub(crate) malformed: Vec<String>,
    /// At most 200 leases that are surely lost.
    pub(crate) lost: Vec<LostLease>,
}

#[derive(Debug)]
pub(crate) struct LostLease {
    pub(crate) task: LeasedId,
    /// As far as it is read: kind, tries and retry policy.
    pub(crate) record: Record,
    /// How many leases were lost in a row before this one.
    pub(crate) lost_before: u32,
}

/// Leaves the pulse, and reads the leases that are surely lost.
pub(crate) async fn tick(
    redis: &impl Query,
    queue: &Queue,
    request: TickRequest,
) -> Result<Tick, BrokerError> {
    let mut call = SCRIPT.on(&queue.base);
    call.arg(request.scan.as_millis() as u64)
        .arg(request.grace.as_millis() as u64)
        .arg(request.skew.as_millis() as u64)
        .arg(defaults::SCRIPT_RECORDS);
    let reply = Parts::of(call.run(redis).await?);
    reply.and_then(parse).ok_or_else(|| SCRIPT.unexpected())
}

fn parse(mut parts: Parts) -> Option<Tick> {
    let grace_left = Duration::from_millis(u64::try_from(parts.integer()?).ok()?);
    let hook_owed = parts.integer()? == 1;
    let malformed = parts.texts()?;
    let mut list = parts.parts()?;
    let mut lost = Vec::with_capacity(list.len() / 7);
    while list.len() > 0 {
        let task = LeasedId {
            id: list.text()?.into(),
            holder: LeaseHolder::found(&list.text()?),
        };
        let mut record = Record::of_kind(list.text()?);
        // A field that makes no sense counts as its default: the task must still be taken back.
        record.retried = list.text()?.parse().unwrap_or(record.retried);
        record.max_retry = list.text()?.parse().unwrap_or(record.max_retry);
        let lost_before = list.text()?.parse().unwrap_or(0);
        record.policy = list.text()?.parse().ok();
        lost.push(LostLease {
            task,
            record,
            lost_before,
        });
    }
    Some(Tick {
        grace_left,
        hook_owed,
        malformed,
        lost,
    })
}
