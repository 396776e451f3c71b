use std::sync::LazyLock;
use std::time::Duration;

use crate::broker::connection::{BrokerError, Query};
use crate::broker::keys::Queue;
use crate::broker::reply::{Decimal, Text, texts};
use crate::broker::script::Script;
use crate::broker::transitions::lease::{LeaseHolder, LeasedId};
use crate::broker::transitions::record::Record;
use crate::defaults;

static SCRIPT: LazyLock<Script> =
    LazyLock::new(|| Script::new("tick", include_str!("../../../lua/tick.lua")));

/// How a recoverer looks.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TickRequest {
    /// The longest outage in which no server that lives loses a lease.
    pub(crate) harmless: Duration,
    /// For how long before this call Redis is known to have been there since the caller's last look.
    pub(crate) vouched: Duration,
    /// For how long no lease is taken after an outage that may have done harm.
    pub(crate) grace: Duration,
    pub(crate) skew: Duration,
}

/// What a tick found.
#[derive(Debug)]
pub(crate) struct Tick {
    /// How long nobody's lease may be taken yet.
    pub(crate) grace_left: Duration,
    /// How long until the next scheduled or retried task is due, or a waiting task's deadline passes.
    pub(crate) next_due: Option<Duration>,
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
    call.arg(request.harmless.as_millis() as u64)
        .arg(request.vouched.as_millis() as u64)
        .arg(request.grace.as_millis() as u64)
        .arg(request.skew.as_millis() as u64)
        .arg(defaults::SCRIPT_RECORDS);
    let reply: (u64, u64, Decimal, bool, Vec<Text>, Vec<Lost>) = call.read(redis).await?;
    let (now, grace_left, Decimal(next_due), hook_owed, malformed, lost) = reply;
    Ok(Tick {
        grace_left: Duration::from_millis(grace_left),
        next_due: next_due.map(|due| Duration::from_millis(due.saturating_sub(now))),
        hook_owed,
        malformed: texts(malformed),
        lost: lost.into_iter().map(LostLease::from).collect(),
    })
}

/// As the script returns it: id, holder, kind, retried, max_retry, lost before, policy.
type Lost = (Text, Text, Text, Text, Text, Text, Text);

impl From<Lost> for LostLease {
    fn from((id, holder, kind, retried, max_retry, lost, policy): Lost) -> Self {
        let mut record = Record::of_kind(kind.0);
        // A field that makes no sense counts as its default: the task must still be taken back.
        record.retried = retried.0.parse().unwrap_or(record.retried);
        record.max_retry = max_retry.0.parse().unwrap_or(record.max_retry);
        record.policy = policy.0.parse().ok();
        Self {
            task: LeasedId {
                id: id.0.into(),
                holder: LeaseHolder::found(&holder.0),
            },
            record,
            lost_before: lost.0.parse().unwrap_or(0),
        }
    }
}
