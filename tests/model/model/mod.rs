//! A queue as the design describes it: plain data, moved one task at a time.
//!
//! What Redis keeps beside the state sets (leases, deadlines, owed hooks) is a part of each task here,
//! so that the two cannot disagree; `keys` derives from it what Redis must hold.

mod claim;
mod clock;
mod ends;
mod enqueue;
mod holders;
mod hooks;
mod operator;
mod recover;
mod settle;
mod stats;
mod step;
mod sweep;
mod task;
mod waiting;

use std::collections::{BTreeMap, BTreeSet};

use crate::answer::Answer;
use crate::op::{Id, Mode, Server};
use crate::shapes::START;

pub use holders::Holder;
pub use stats::Counters;
pub use task::{Health, Lease, Stands, Task};

/// How much longer a task of a level more has waited, in µs.
const HEAD_START: i64 = 60_000_000;
/// How long servers say that they live, in ms.
pub const SERVER_LIVES: u64 = 10_000_000;

#[derive(Clone, Debug)]
pub struct Model {
    /// In µs since the epoch.
    pub now: u64,
    /// In µs since the start: the time of Redis' own expiry of keys, which never goes back.
    pub elapsed: u64,
    pub tasks: BTreeMap<Id, Task>,
    /// By key.
    pub locks: BTreeMap<String, Lock>,
    /// Until when, in ms.
    pub waiters: BTreeMap<Id, u64>,
    pub meta: Meta,
    pub stats: Counters,
    /// A token says that there is work.
    pub wake: bool,
    /// Records that were no hash.
    pub aside: BTreeSet<Id>,
    /// The index of servers: until when, in ms.
    pub servers: BTreeMap<Server, u64>,
    /// How long the index lives, in ms.
    pub index_lives: u64,
    /// The servers that have a record.
    pub alive: BTreeSet<Server>,

    /// All leases that there were, as their holders remember them.
    pub history: BTreeMap<Id, Vec<Holder>>,
    /// What the last tick answered: id and lease holder.
    pub found: Vec<(Id, String)>,
    /// The *not before* of each hold on a task's hook.
    pub holds: BTreeMap<Id, Vec<u64>>,

    /// Of the last operation: what it answers.
    pub answer: Answer,
    /// What it publishes: channel, after the prefix, and message.
    pub published: Vec<(String, String)>,
    /// The lease holders that it named, one for each `Held`.
    pub named: Vec<String>,
}

#[derive(Clone, Debug)]
pub struct Lock {
    pub mode: Mode,
    pub id: Id,
    /// On the scale of `elapsed`.
    pub expires: Option<u64>,
}

#[derive(Clone, Debug, Default)]
pub struct Meta {
    pub schema: bool,
    pub lease: u64,
    pub paused: bool,
    pub pulse: Option<u64>,
    pub grace_until: Option<u64>,
    /// The kinds that have a hook: until when that is known, in ms; `None` where a server of 0.1 said so.
    pub hooked: BTreeMap<&'static str, Option<u64>>,
}

impl Model {
    pub fn new() -> Self {
        Self {
            now: START,
            elapsed: 0,
            tasks: BTreeMap::new(),
            locks: BTreeMap::new(),
            waiters: BTreeMap::new(),
            meta: Meta::default(),
            stats: Counters::default(),
            wake: false,
            aside: BTreeSet::new(),
            servers: BTreeMap::new(),
            index_lives: 0,
            alive: BTreeSet::new(),
            history: BTreeMap::new(),
            found: Vec::new(),
            holds: BTreeMap::new(),
            answer: Answer::Nothing,
            published: Vec::new(),
            named: Vec::new(),
        }
    }

    pub fn now_ms(&self) -> u64 {
        self.now / 1000
    }

    /// The time in this many ms: rounded up, because nothing may be due early.
    fn after(&self, ms: u64) -> u64 {
        self.now.div_ceil(1000) + ms
    }

    pub fn at(&self, from_now: i64) -> u64 {
        self.now_ms().saturating_add_signed(from_now)
    }

    /// The score of a task that becomes pending as the i-th of its batch.
    fn place(&self, i: usize, priority: u8) -> i64 {
        self.now as i64 + i as i64 - i64::from(priority) * HEAD_START
    }

    fn count(&mut self, name: impl Into<String>, n: usize) {
        self.stats.add(name.into(), n as u64, self.now_ms());
    }

    /// Ids in a state in its order: by score, then by id.
    fn in_order(&self, score: impl Fn(&Task) -> Option<i64>) -> Vec<(i64, Id)> {
        let mut ids: Vec<_> = self
            .tasks
            .iter()
            .filter_map(|(&id, task)| Some((score(task)?, id)))
            .collect();
        ids.sort_unstable();
        ids
    }

    /// When the next waiting task is due or reaches its deadline, in ms.
    pub fn next_due(&self) -> Option<u64> {
        self.tasks
            .values()
            .flat_map(|task| [task.due(), task.deadline_entry()])
            .flatten()
            .min()
    }

    fn next_due_in(&self) -> Option<u64> {
        self.next_due().map(|due| due.saturating_sub(self.now_ms()))
    }
}
