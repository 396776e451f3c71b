//! What an operation answers, in one shape for the model and for the scripts.

use crate::broker::operator::Answer as ChangeOutcome;
use crate::broker::{
    DroppedHook, EnqueueAnswer, ExpiredTask, Extended, Malformed, Record, Settled,
};

#[derive(Debug, Clone, PartialEq)]
pub enum Answer {
    Nothing,
    Enqueued(Vec<EnqueueAnswer>),
    Claimed(Claimed),
    Extended(Vec<Extended>),
    Noted(bool),
    Settled(Vec<Settled>),
    Promoted(Promoted),
    Expired {
        archived: Vec<ExpiredTask>,
        malformed: Vec<String>,
    },
    Ticked(Ticked),
    Adopted(usize),
    Swept(Swept),
    /// Kinds, sorted.
    Lapsed(Vec<String>),
    Hooks(Hooks),
    Watched {
        state: String,
        result: String,
        reason: String,
        error: String,
    },
    ChangeOutcome(ChangeOutcome),
    Looked(Option<Looked>),
}

#[derive(Debug, Clone, PartialEq)]
pub struct Claimed {
    pub number: u64,
    pub now: u64,
    pub more: bool,
    pub next_due: Option<u64>,
    pub malformed: Vec<String>,
    pub expired: Vec<ExpiredTask>,
    /// Id, lease holder, record.
    pub tasks: Vec<(String, String, Result<Record, Malformed>)>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Promoted {
    pub moved: usize,
    pub more: bool,
    pub deadlines_passed: bool,
    pub next_due: Option<u64>,
    pub malformed: Vec<String>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Ticked {
    pub grace_left: u64,
    pub hook_owed: bool,
    pub malformed: Vec<String>,
    pub lost: Vec<Lost>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Lost {
    pub id: String,
    pub holder: String,
    pub kind: String,
    pub retried: u32,
    pub max_retry: u32,
    pub lost_before: u32,
    pub has_policy: bool,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Swept {
    pub completed: usize,
    pub archived: usize,
    pub hooks_dropped: Vec<DroppedHook>,
    pub spared: usize,
    pub more: bool,
    pub shed: usize,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Hooks {
    pub dropped: Vec<DroppedHook>,
    pub more: bool,
    pub taken: Vec<TakenHook>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct TakenHook {
    pub id: String,
    pub not_before: String,
    pub died_at: u64,
    pub reason: String,
    pub error: String,
    pub failed: u32,
    pub record: Result<Record, Malformed>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Looked {
    pub state: String,
    pub score: i64,
    pub lease: String,
    /// Sorted.
    pub fields: Vec<(String, String)>,
}
