use std::sync::LazyLock;
use std::time::Duration;

use redis::{FromRedisValue, Value};

use crate::broker::connection::{BrokerError, Query};
use crate::broker::keys::Queue;
use crate::broker::reply::{Decimal, Text, texts};
use crate::broker::script::Script;
use crate::broker::transitions::expire::ExpiredTask;
use crate::broker::transitions::lease::{LeaseHolder, LeasedId};
use crate::broker::transitions::record::{Malformed, Record};
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
    /// One of the kinds that the server has dead-letter hooks for, if it has any.
    pub(crate) hooked_kind: Option<&'a str>,
    /// Redis' time in ms after which it is not to be run any more: nobody reads the reply then.
    pub(crate) not_after: Option<u64>,
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
    /// Nothing was claimed: the server's hooks are not known in this queue.
    pub(crate) lacks_hooks: bool,
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
        .arg(defaults::SCRIPT_BYTES)
        .arg(request.not_after.map_or(String::new(), |ms| ms.to_string()))
        .arg(request.hooked_kind.map_or(String::new(), hook_field));
    let reply = Flat(call.read::<Vec<Value>>(redis).await?.into_iter());
    parse(reply, request.server).ok_or_else(|| SCRIPT.unexpected())
}

/// The field of `meta` that notes that a kind has a hook.
fn hook_field(kind: &str) -> String {
    format!("hook:{kind}")
}

/// What is left of a reply without lists in it.
struct Flat(std::vec::IntoIter<Value>);

impl Flat {
    fn next<T: FromRedisValue>(&mut self) -> Option<T> {
        T::from_redis_value(self.0.next()?).ok()
    }

    fn list<T: FromRedisValue>(&mut self, len: usize) -> Option<Vec<T>> {
        (0..len).map(|_| self.next()).collect()
    }

    fn pairs<A: FromRedisValue, B: FromRedisValue>(&mut self, len: usize) -> Option<Vec<(A, B)>> {
        (0..len)
            .map(|_| Some((self.next()?, self.next()?)))
            .collect()
    }
}

fn parse(mut reply: Flat, server: &str) -> Option<Claim> {
    let (number, now) = (reply.next()?, reply.next()?);
    let more: u8 = reply.next()?;
    let Decimal(next_due) = reply.next()?;
    let holder = LeaseHolder::new(number, server);
    let count: usize = reply.next()?;
    let tasks = (0..count).map(|_| {
        let Text(id) = reply.next()?;
        let values: usize = reply.next()?;
        Some(ClaimedTask {
            leased: LeasedId {
                id: id.into(),
                holder: holder.clone(),
            },
            record: Record::parse(reply.pairs(values / 2)?.into_iter()),
        })
    });
    let tasks = tasks.collect::<Option<_>>()?;
    let count = reply.next()?;
    let malformed = texts(reply.list(count)?);
    let expired =
        (0..reply.0.len() / 3).map(|_| Some((reply.next()?, reply.next()?, reply.next()?)));
    let expired = expired.collect::<Option<Vec<_>>>()?;
    Some(Claim {
        number,
        now,
        tasks,
        more: more > 0,
        lacks_hooks: more == 2,
        next_due: next_due.map(|due: u64| Duration::from_millis(due.saturating_sub(now))),
        malformed,
        expired: expired.into_iter().map(ExpiredTask::from).collect(),
    })
}
