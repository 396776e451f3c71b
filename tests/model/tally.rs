//! What the runs have met: a machine that never gets to a thing does not test it.

use std::collections::{BTreeMap, BTreeSet};

use crate::answer::Answer;
use crate::broker::EnqueueAnswer;
use crate::broker::operator::EndWish;
use crate::model::{Model, Stands};
use crate::op::{New, Op};

#[derive(Default)]
pub struct Tally {
    pub steps: usize,
    pub runs: usize,
    met: BTreeMap<String, usize>,
}

/// Every counter that the scripts keep, and each kind of answer.
const MUST_MEET: &[&str] = &[
    "adopted",
    "archived",
    "archived_cancelled",
    "archived_deadline_passed",
    "archived_lease_expired",
    "archived_operator",
    "archived_retries_exhausted",
    "archived_skipped",
    "cancels_requested",
    "deferred",
    "deleted",
    "duplicates",
    "enqueued",
    "expired",
    "failed",
    "hooks_dropped",
    "hooks_run",
    "malformed",
    "missing",
    "processed",
    "recovered",
    "released",
    "replaced",
    "shed",
    "retried",
    "stale",
    "superseded",
    "swept_archived",
    "swept_completed",
    "answer Active",
    "answer Already",
    "answer Completed",
    "answer Done",
    "answer Duplicate",
    "answer Missing",
    "answer Requested",
    "answer Superseded",
    "extended Cancelled",
    "extended Done",
    "extended Lost",
    "expired by a claim",
    "settled Done(Archived(Cancelled))",
    "settled Done(Archived(DeadlinePassed))",
    "settled Done(Archived(Operator))",
    "settled Done(Archived(LeaseExpired))",
    "settled Done(Archived(RetriesExhausted))",
    "settled Done(Archived(Skipped))",
    "settled Done(Completed)",
    "settled Done(Deferred)",
    "settled Done(Released)",
    "settled Done(Retried)",
    "settled Done(Deleted)",
    "settled Done(Superseded)",
    "settled Gone",
    "settled Stale",
    "hooks lapsed",
    "hooks not lapsed yet",
    "watched archived",
    "watched completed",
    "watched gone",
    "watched waiting",
    "claimed up to the bytes",
    "claimed while paused",
    "a task of another kind holds the lock",
    "a failed task replaced",
    "a weaker cancel after a stronger one",
    "lock ended",
    "message ended",
    "message of a cancel",
    "run past its deadline",
];

impl Tally {
    pub fn note(&mut self, op: &Op, before: &Model, after: &Model) {
        self.steps += 1;
        let mut met = BTreeSet::new();
        for (name, n) in &after.stats.total {
            if before.stats.total.get(name) != Some(n) {
                met.insert(name.clone());
            }
        }
        if matches!(&after.answer, Answer::Claimed(claimed) if !claimed.expired.is_empty()) {
            met.insert("expired by a claim".to_owned());
        }
        match &after.answer {
            Answer::Settled(settled) => {
                met.extend(settled.iter().map(|settled| format!("settled {settled:?}")));
            }
            Answer::Extended(extended) => {
                met.extend(extended.iter().map(|it| format!("extended {it:?}")));
            }
            Answer::ChangeOutcome(answer) => {
                let answer = format!("{answer:?}");
                let word = answer.split(' ').next().unwrap_or_default();
                met.insert(format!("answer {word}"));
            }
            Answer::Lapsed(kinds) => {
                if !kinds.is_empty() {
                    met.insert("hooks lapsed".to_owned());
                }
                if !after.meta.hooked.is_empty() {
                    met.insert("hooks not lapsed yet".to_owned());
                }
            }
            Answer::Enqueued(answers) => met.extend(merges(op, before, answers)),
            Answer::Watched { state, .. } => {
                met.insert(format!("watched {state}"));
            }
            Answer::Claimed(claimed) if before.meta.paused => {
                let waits = before.tasks.values().any(|task| task.waits());
                if waits && claimed.tasks.is_empty() {
                    met.insert("claimed while paused".to_owned());
                }
            }
            Answer::Claimed(claimed) => {
                if let Op::Claim { room, .. } = op
                    && claimed.more
                    && !claimed.tasks.is_empty()
                    && claimed.tasks.len() < *room
                    && before.stats.total == after.stats.total
                {
                    met.insert("claimed up to the bytes".to_owned());
                }
            }
            _ => {}
        }
        if let Op::Run(id) = op
            && before
                .tasks
                .get(id)
                .is_some_and(|task| task.deadline.is_some())
            && after.tasks[id].deadline.is_none()
        {
            met.insert("run past its deadline".to_owned());
        }
        if let Op::End { id, wish, .. } = op
            && *wish != EndWish::Delete
            && before
                .tasks
                .get(id)
                .is_some_and(|task| task.cancel == Some("delete"))
        {
            met.insert("a weaker cancel after a stronger one".to_owned());
        }
        if matches!(op, Op::Clock(_)) && after.locks.len() < before.locks.len() {
            met.insert("lock ended".to_owned());
        }
        for (channel, _) in &after.published {
            let what = match channel.as_str() {
                "{q}:ended" => "message ended",
                _ => "message of a cancel",
            };
            met.insert(what.to_owned());
        }
        for what in met {
            *self.met.entry(what).or_default() += 1;
        }
    }

    pub fn never_met(&self) -> Vec<&'static str> {
        let is_new = |what: &&&str| !self.met.contains_key(**what);
        MUST_MEET.iter().filter(is_new).copied().collect()
    }

    /// How often the rarest things were met.
    pub fn rarest(&self, n: usize) -> Vec<(usize, &str)> {
        let mut met: Vec<_> = self.met.iter().map(|(what, &n)| (n, &**what)).collect();
        met.sort_unstable();
        met.truncate(n);
        met
    }
}

/// What is told of how new tasks meet those that hold their locks.
fn merges(op: &Op, before: &Model, answers: &[EnqueueAnswer]) -> BTreeSet<String> {
    let Op::Enqueue(tasks) = op else {
        return BTreeSet::new();
    };
    let what = |(new, answer): (&New, &EnqueueAnswer)| match answer {
        EnqueueAnswer::Duplicate { holder } => {
            let holder = before.tasks.get(&**holder)?;
            (holder.kind != new.kind).then(|| "a task of another kind holds the lock".to_owned())
        }
        EnqueueAnswer::Replaced { holder } => {
            let holder = before.tasks.get(&**holder)?;
            matches!(holder.stands, Stands::Retry(_)).then(|| "a failed task replaced".to_owned())
        }
        _ => None,
    };
    tasks.iter().zip(answers).filter_map(what).collect()
}
