//! The operations. They name tasks, leases and times in relation to what is there, so that a run stays
//! meaningful when operations before it are left out.

use crate::broker::operator::EndWish;
use crate::broker::{ArchiveReason, HookEnd};

pub type Id = &'static str;
pub type Server = &'static str;

/// A time in ms, counted from now.
pub type FromNow = i64;

#[derive(Clone)]
pub enum Op {
    Enqueue(Vec<New>),
    Claim {
        server: Server,
        room: usize,
        lease: u64,
    },
    Extend {
        lease: u64,
        tasks: Vec<Held>,
    },
    Progress {
        task: Held,
        note: &'static str,
    },
    Complete(Vec<(Held, Option<&'static str>)>),
    Revoke(Vec<Held>),
    Retry {
        by: Settler,
        tasks: Vec<Retry>,
    },
    Archive {
        by: Settler,
        tasks: Vec<Archive>,
    },
    Defer(Vec<Defer>),
    Release(Vec<Release>),
    Promote,
    Expire,
    Tick(Tick),
    Adopt(Vec<Id>),
    Sweep(Sweep),
    RegisterHooks {
        kinds: Vec<&'static str>,
        lasts: u64,
    },
    /// For how long what a server of 0.1 has registered holds from now on.
    LapseHooks(u64),
    /// A server of 0.1 registers a kind, with no time.
    RegisterOldHook(&'static str),
    TakeHooks(TakeHooks),
    EndHooks(Vec<HookDone>),
    Wait {
        id: Id,
        patience: u64,
    },
    Run(Id),
    Edit {
        id: Id,
        payload: &'static str,
    },
    End {
        id: Id,
        wish: EndWish,
        is_cancel: bool,
    },
    Look(Id),
    Pause,
    Resume,
    /// A server takes the wake token, and may die before it claims.
    TakeToken,
    /// A server writes its record and its place in the index.
    Publish(Server),
    /// A server takes both off.
    Retire(Server),
    Clock(Clock),
    /// Something outside of windlass spoils a task.
    Spoil(Id, Damage),
}

/// A task to enqueue.
#[derive(Clone, Debug)]
pub struct New {
    pub id: Id,
    pub own_id: bool,
    pub kind: &'static str,
    pub payload: &'static str,
    pub due: Due,
    pub priority: u8,
    pub max_retry: Option<u32>,
    pub timeout: Option<u64>,
    pub policy: bool,
    pub deadline: Option<FromNow>,
    pub start_before: Option<FromNow>,
    pub retention: u64,
    pub unique: Option<Unique>,
    pub header: bool,
}

#[derive(Clone, Copy, Debug)]
pub enum Due {
    Now,
    After(u64),
    At(FromNow),
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Mode {
    Done,
    Started,
    Time,
    Replace,
}

#[derive(Clone, Copy, Debug)]
pub struct Unique {
    pub mode: Mode,
    /// `None`: by kind and payload.
    pub key: Option<&'static str>,
    /// A given key is shared by all kinds.
    pub across_kinds: bool,
    /// For a lock for a time: its time. Else the longest time.
    pub lasts: Option<u64>,
    pub max_wait: Option<u64>,
}

/// A task as somebody holds it, or believes so.
#[derive(Clone, Copy, Debug)]
pub struct Held {
    pub id: Id,
    pub lease: Which,
}

#[derive(Clone, Copy, Debug)]
pub enum Which {
    /// The lease that lives, or the last one that did.
    Current,
    /// The one this many before it.
    Former(usize),
    /// The current one's number with another server's name.
    OtherServer,
    /// The current one's server with the number after it.
    OtherNumber,
    /// The lease that the last tick answered.
    Found,
}

#[derive(Clone, Copy, Debug)]
pub enum Settler {
    Holder,
    Recoverer { skew: u64 },
}

#[derive(Clone, Copy, Debug)]
pub struct Retry {
    pub task: Held,
    pub delay: u64,
    pub spends: bool,
    pub lost: Option<u32>,
    pub undecodable: Option<u32>,
}

#[derive(Clone, Copy, Debug)]
pub struct Archive {
    pub task: Held,
    pub reason: ArchiveReason,
    pub lost: Option<u32>,
}

#[derive(Clone, Copy, Debug)]
pub struct Defer {
    pub task: Held,
    pub delay: u64,
    pub started: bool,
}

#[derive(Clone, Copy, Debug)]
pub struct Release {
    pub task: Held,
    pub started: bool,
}

#[derive(Clone, Copy, Debug)]
pub struct Tick {
    pub harmless: u64,
    pub vouched: u64,
    pub grace: u64,
    pub skew: u64,
}

#[derive(Clone, Copy, Debug)]
pub struct Sweep {
    pub cap: usize,
    pub age: u64,
    pub keep_for_hooks: u64,
    pub pass_over: usize,
    /// Redis needs all the memory.
    pub sheds: bool,
}

#[derive(Clone, Debug)]
pub struct TakeHooks {
    pub room: usize,
    pub hold: u64,
    pub kinds: Vec<&'static str>,
}

#[derive(Clone, Copy, Debug)]
pub struct HookDone {
    pub id: Id,
    /// Whether it names the hold before its last one.
    pub late: bool,
    pub end: HookEnd,
}

#[derive(Clone, Copy, Debug)]
pub enum Clock {
    /// In µs.
    Forward(u64),
    /// In ms: a replica with another clock took over.
    Back(u64),
    /// To the first time of this sort and so many ms on, if that is ahead.
    To(Event, i64),
}

#[derive(Clone, Copy, Debug)]
pub enum Event {
    Due,
    Deadline,
    Expiry,
    /// An expiry and the recoverer's usual skew.
    Lost,
    GraceEnd,
    RetentionEnd,
    Hook,
    /// A registered hook is known no longer.
    Lapse,
    LockEnd,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Damage {
    /// It stands in no state set any more.
    Unlisted,
    /// Its record is gone.
    NoRecord,
    /// Its record has no kind.
    NoKind,
    /// Its record's key holds a list.
    NoHash,
}
