use std::mem::discriminant;
use std::sync::LazyLock;
use std::time::Duration;

use redis::{FromRedisValue, ParsingError, Value};

use crate::broker::archive_reason::ArchiveReason;
use crate::broker::connection::{BrokerError, Query};
use crate::broker::keys::Queue;
use crate::broker::script::{Call, Script};
use crate::broker::transitions::lease::LeasedId;
use crate::broker::transitions::span::delay_ms;
use crate::defaults::{SCRIPT_BYTES, SCRIPT_RECORDS, SCRIPT_TASKS};

static COMPLETE: LazyLock<Script> =
    LazyLock::new(|| Script::new("complete", include_str!("../../../lua/complete.lua")));
static RETRY: LazyLock<Script> =
    LazyLock::new(|| Script::new("retry", include_str!("../../../lua/retry.lua")));
static ARCHIVE: LazyLock<Script> =
    LazyLock::new(|| Script::new("archive", include_str!("../../../lua/archive.lua")));
static DEFER: LazyLock<Script> =
    LazyLock::new(|| Script::new("defer", include_str!("../../../lua/defer.lua")));
static RELEASE: LazyLock<Script> =
    LazyLock::new(|| Script::new("release", include_str!("../../../lua/release.lua")));

/// How a lease on a task ends.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Settlement {
    pub(crate) task: LeasedId,
    pub(crate) how: How,
}

/// What becomes of a task whose lease ends.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum How {
    /// active → gone, or → completed for its retention: done.
    Complete {
        /// From the claim: its record has a lock or a retention.
        has_end_effects: bool,
        /// Kept for the task's retention.
        result: Option<Vec<u8>>,
    },
    /// active → gone, whatever its retention: its handler says that nobody needs it any more.
    Revoke {
        /// As in `Complete`.
        has_end_effects: bool,
    },
    /// active → retry, or → pending when the delay is zero: a failed attempt that is repeated.
    Retry {
        delay: Duration,
        /// Whether it raises `retried`.
        spends_retry: bool,
        /// How many leases were lost in a row, this one included; `None` when this one was not lost.
        lost: Option<u32>,
        /// How often in a row the payload could not be decoded, this time included.
        undecodable: Option<u32>,
        error: String,
    },
    /// active → archived: a task that is given up.
    Archive {
        reason: ArchiveReason,
        /// As in `Retry`.
        lost: Option<u32>,
        error: String,
    },
    /// active → scheduled: put off without having failed.
    Defer {
        delay: Duration,
        /// Whether its handler was called.
        started: bool,
    },
    /// active → pending, where it was before its claim: handed back.
    Release {
        /// Whether its handler was called.
        started: bool,
    },
}

/// What Redis says to one settlement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Settled {
    /// The lease ended.
    Done(Became),
    /// There is no such lease: this call is a repeat, or the task was taken away.
    Gone,
    /// Another lease lives, or a recoverer came too early.
    Stale,
}

/// What became of a task whose lease ended: what was wanted, unless its next attempt would be too late,
/// somebody has cancelled it, or a newer task has taken its place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Became {
    Completed,
    Retried,
    Archived(ArchiveReason),
    Deferred,
    Released,
    Deleted,
    /// Dropped, because a newer task took its lock while it ran.
    Superseded,
}

/// Who ends a lease.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum By {
    Holder,
    /// Only where the lease is past its expiry by this much.
    Recoverer {
        skew: Duration,
    },
}

impl How {
    /// What becomes of the task where nothing speaks against it.
    pub(crate) fn wanted(&self) -> Became {
        match self {
            Self::Complete { .. } | Self::Revoke { .. } => Became::Completed,
            Self::Retry { .. } => Became::Retried,
            Self::Archive { reason, .. } => Became::Archived(*reason),
            Self::Defer { .. } => Became::Deferred,
            Self::Release { .. } => Became::Released,
        }
    }

    /// What the attempt failed with; empty where it did not fail.
    pub(crate) fn error(&self) -> &str {
        match self {
            Self::Retry { error, .. } | Self::Archive { error, .. } => error,
            Self::Complete { .. }
            | Self::Revoke { .. }
            | Self::Defer { .. }
            | Self::Release { .. } => "",
        }
    }

    /// Until the task is due again.
    pub(crate) fn delay(&self) -> Duration {
        match self {
            Self::Retry { delay, .. } | Self::Defer { delay, .. } => *delay,
            Self::Complete { .. }
            | Self::Revoke { .. }
            | Self::Archive { .. }
            | Self::Release { .. } => Duration::ZERO,
        }
    }

    fn script(&self) -> &'static Script {
        match self {
            Self::Complete { .. } | Self::Revoke { .. } => &COMPLETE,
            Self::Retry { .. } => &RETRY,
            Self::Archive { .. } => &ARCHIVE,
            Self::Defer { .. } => &DEFER,
            Self::Release { .. } => &RELEASE,
        }
    }

    /// The most tasks that one call of its script takes.
    pub(crate) fn most_in_a_call(&self) -> usize {
        match self {
            // Reads few records.
            Self::Complete { .. } | Self::Revoke { .. } => SCRIPT_TASKS,
            _ => SCRIPT_RECORDS,
        }
    }

    /// About how many bytes it adds to a call, where that may be many.
    fn bytes(&self) -> usize {
        match self {
            Self::Complete { result, .. } => result.as_ref().map_or(0, Vec::len),
            _ => 0,
        }
    }

    fn add_to(&self, call: &mut Call<'_>) {
        let or_empty = |row: &Option<u32>| row.map_or(String::new(), |n| n.to_string());
        match self {
            Self::Complete {
                has_end_effects,
                result,
            } => call
                .arg(u8::from(*has_end_effects))
                .arg(result.as_deref().unwrap_or_default()),
            Self::Revoke { has_end_effects } => call
                .arg(if *has_end_effects { "revoked" } else { "0" })
                .arg(""),
            Self::Retry {
                delay,
                spends_retry,
                lost,
                undecodable,
                error,
            } => call
                .arg(delay_ms(*delay))
                .arg(u8::from(*spends_retry))
                .arg(or_empty(lost))
                .arg(or_empty(undecodable))
                .arg(error),
            Self::Archive {
                reason,
                lost,
                error,
            } => call.arg(reason.as_str()).arg(or_empty(lost)).arg(error),
            Self::Defer { delay, started } => call.arg(delay_ms(*delay)).arg(u8::from(*started)),
            Self::Release { started } => call.arg(u8::from(*started)),
        };
    }
}

/// Groups what goes into one call of [`settle`] each: of one script, and with no more tasks and bytes
/// than a call may carry. Keeps the order within a script.
pub(crate) fn batches<T>(
    settlements: impl Iterator<Item = T>,
    how: impl Fn(&T) -> &How,
) -> Vec<Vec<T>> {
    let mut batches: Vec<(usize, Vec<T>)> = Vec::new();
    for settlement in settlements {
        let (script, most, more) = {
            let how = how(&settlement);
            (discriminant(how), how.most_in_a_call(), how.bytes())
        };
        let mut latest_first = batches.iter_mut().rev();
        let last = latest_first.find(|(_, batch)| discriminant(how(&batch[0])) == script);
        match last {
            Some((bytes, batch)) if batch.len() < most && *bytes + more <= SCRIPT_BYTES => {
                *bytes += more;
                batch.push(settlement);
            }
            _ => batches.push((more, vec![settlement])),
        }
    }
    batches.into_iter().map(|(_, batch)| batch).collect()
}

/// active → wherever the settlements say, which are one of the [`batches`]. Returns for each what
/// became of its task.
pub(crate) async fn settle(
    redis: &impl Query,
    queue: &Queue,
    by: By,
    settlements: &[&Settlement],
) -> Result<Vec<Settled>, BrokerError> {
    let Some(first) = settlements.first() else {
        return Ok(Vec::new());
    };
    let (kind, script) = (discriminant(&first.how), first.how.script());
    let mut call = script.on(&queue.base);
    match (&first.how, by) {
        // Only a holder knows that its handler has come to the end.
        (How::Complete { .. } | How::Revoke { .. }, _) => {}
        (_, By::Holder) => drop(call.arg("")),
        (_, By::Recoverer { skew }) => drop(call.arg(skew.as_millis() as u64)),
    }
    for Settlement { task, how } in settlements {
        debug_assert!(discriminant(how) == kind, "a batch has one script");
        call.arg(&*task.id).arg(task.holder.as_str());
        how.add_to(&mut call);
    }
    let words: Vec<Word> = call.read_each(redis, settlements.len()).await?;
    let settled = settlements.iter().zip(words);
    let settled = settled.map(|(settlement, word)| word.of(&settlement.how));
    Ok(settled.collect())
}

/// What a script says to one settlement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Word {
    Done,
    Gone,
    Stale,
    /// Something else than was wanted.
    Instead(Became),
}

impl Word {
    fn of(self, how: &How) -> Settled {
        match self {
            Self::Done => Settled::Done(how.wanted()),
            Self::Gone => Settled::Gone,
            Self::Stale => Settled::Stale,
            Self::Instead(became) => Settled::Done(became),
        }
    }
}

impl FromRedisValue for Word {
    fn from_redis_value(reply: Value) -> Result<Self, ParsingError> {
        match reply {
            Value::Int(1) => Ok(Self::Done),
            Value::Int(0) => Ok(Self::Gone),
            Value::Int(-1) => Ok(Self::Stale),
            Value::BulkString(word) if word == b"deleted" => Ok(Self::Instead(Became::Deleted)),
            Value::BulkString(word) if word == b"superseded" => {
                Ok(Self::Instead(Became::Superseded))
            }
            Value::BulkString(word) => {
                let reason = ArchiveReason::parse(&String::from_utf8(word)?);
                let archived = reason.map(|reason| Self::Instead(Became::Archived(reason)));
                archived.ok_or_else(|| "an unknown reason".into())
            }
            _ => Err("no word for a settlement".into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn complete(bytes: usize) -> How {
        How::Complete {
            has_end_effects: true,
            result: Some(vec![0; bytes]),
        }
    }

    const RELEASE: How = How::Release { started: true };

    fn sizes(settlements: impl IntoIterator<Item = How>) -> Vec<usize> {
        let batches = batches(settlements.into_iter(), |how| how);
        batches.iter().map(Vec::len).collect()
    }

    #[test]
    fn a_batch_is_of_one_script_and_within_its_bounds() {
        assert_eq!(sizes([]), [0; 0]);
        assert_eq!(sizes([complete(0), RELEASE, complete(0)]), [2, 1]);
        assert_eq!(sizes(vec![complete(1); 201]), [200, 1]);
        assert_eq!(sizes(vec![RELEASE; 201]), [100, 100, 1]);
        let half = SCRIPT_BYTES / 2;
        assert_eq!(sizes(vec![complete(half); 5]), [2, 2, 1]);
        // A single larger one still goes.
        assert_eq!(sizes(vec![complete(SCRIPT_BYTES + 1); 2]), [1, 1]);
    }

    #[test]
    fn each_word_of_a_reply_says_what_became_of_the_task() {
        use ArchiveReason::*;
        let retry = How::Retry {
            delay: Duration::ZERO,
            spends_retry: true,
            lost: None,
            undecodable: None,
            error: String::new(),
        };
        let archive = How::Archive {
            reason: Skipped,
            lost: None,
            error: String::new(),
        };
        let defer = How::Defer {
            delay: Duration::ZERO,
            started: true,
        };
        let done = |became| Some(Settled::Done(became));
        let text = |text: &str| Value::BulkString(text.as_bytes().to_vec());
        for (how, reply, settled) in [
            (&complete(0), Value::Int(1), done(Became::Completed)),
            (&retry, Value::Int(1), done(Became::Retried)),
            (&archive, Value::Int(1), done(Became::Archived(Skipped))),
            (&defer, Value::Int(1), done(Became::Deferred)),
            (&RELEASE, Value::Int(1), done(Became::Released)),
            (&retry, Value::Int(0), Some(Settled::Gone)),
            (&retry, Value::Int(-1), Some(Settled::Stale)),
            (&retry, Value::Int(2), None),
            (&retry, text("deleted"), done(Became::Deleted)),
            (&RELEASE, text("superseded"), done(Became::Superseded)),
            (&defer, text("cancelled"), done(Became::Archived(Cancelled))),
            (
                &retry,
                text("deadline_passed"),
                done(Became::Archived(DeadlinePassed)),
            ),
            (&archive, text("operator"), done(Became::Archived(Operator))),
            (&retry, text("nonsense"), None),
        ] {
            let word = Word::from_redis_value(reply.clone()).ok();
            assert_eq!(word.map(|word| word.of(how)), settled, "{reply:?}");
        }
    }
}
