use std::sync::{Arc, LazyLock};
use std::time::Duration;

use super::super::reply::Parts;
use super::super::script::Script;
use super::super::{BrokerError, Query, Queue};
use super::{ExpiredTask, LeaseHolder, LeasedId, Malformed, Record};
use crate::defaults;

static SCRIPT: LazyLock<Script> =
    LazyLock::new(|| Script::new("claim", include_str!("../../../lua/claim.lua")));

/// What a server asks of a queue.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ClaimRequest<'a> {
    pub(crate) server: &'a str,
    /// How many tasks it has room for; a call takes at most 200. 0 hands a wake token on.
    pub(crate) room: usize,
    pub(crate) lease: Duration,
}

/// What a claim call got.
#[derive(Debug)]
pub(crate) struct Claim {
    /// The number of all leases of this call: their fencing number.
    pub(crate) number: u64,
    /// Redis' time, in ms since the epoch.
    pub(crate) now: u64,
    pub(crate) tasks: Vec<ClaimedTask>,
    /// More could be claimed at once.
    pub(crate) more: bool,
    /// How long until the queue's next scheduled or retried task is due.
    pub(crate) next_due: Option<Duration>,
    /// Ids whose records were set aside.
    pub(crate) malformed: Vec<String>,
    /// What was archived, because its deadline had passed.
    pub(crate) expired: Vec<ExpiredTask>,
}

#[derive(Debug)]
pub(crate) struct ClaimedTask {
    pub(crate) leased: LeasedId,
    pub(crate) record: Result<Record, Malformed>,
}

/// pending → active.
pub(crate) async fn claim(
    redis: &impl Query,
    queue: &Queue,
    request: ClaimRequest<'_>,
) -> Result<Claim, BrokerError> {
    let mut call = SCRIPT.on(&queue.base);
    call.arg(request.server)
        .arg(request.room.min(defaults::SCRIPT_TASKS))
        .arg(request.lease.as_millis() as u64)
        .arg(defaults::SCRIPT_BYTES);
    let reply = Parts::of(call.run(redis).await?);
    reply
        .and_then(|parts| parse(parts, request.server))
        .ok_or_else(|| SCRIPT.unexpected())
}

fn parse(mut parts: Parts, server: &str) -> Option<Claim> {
    let number = u64::try_from(parts.integer()?).ok()?;
    let now = u64::try_from(parts.integer()?).ok()?;
    let more = parts.integer()? == 1;
    let next_due = parts
        .number::<u64>()?
        .map(|due| Duration::from_millis(due.saturating_sub(now)));
    let count = parts.integer()?;
    let holder = LeaseHolder::new(number, server);
    let tasks = (0..count).map(|_| {
        let id: Arc<str> = parts.text()?.into();
        let pairs = parts.integer()? / 2;
        let pairs = (0..pairs).map(|_| Some((parts.bytes()?, parts.bytes()?)));
        let pairs = pairs.collect::<Option<Vec<_>>>()?;
        Some(ClaimedTask {
            leased: LeasedId {
                id,
                holder: holder.clone(),
            },
            record: Record::parse(pairs.into_iter()),
        })
    });
    let tasks = tasks.collect::<Option<_>>()?;
    let count = parts.integer()?;
    let malformed = (0..count).map(|_| parts.text()).collect::<Option<_>>()?;
    let expired = ExpiredTask::parse_all(parts)?;
    Some(Claim {
        number,
        now,
        tasks,
        more,
        next_due,
        malformed,
        expired,
    })
}
