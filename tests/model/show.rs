//! Operations in words.

use std::fmt::{self, Debug, Display, Formatter};
use std::time::Duration;

use crate::broker::operator::EndWish;
use crate::op::*;

impl Debug for Op {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

impl Display for Op {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Op::Enqueue(tasks) => write!(f, "enqueue {}", list(tasks)),
            Op::Claim {
                server,
                room,
                lease,
            } => write!(f, "{server} claims up to {room} for {:?}", ms(*lease)),
            Op::Extend { lease, tasks } => write!(f, "extend {} by {:?}", list(tasks), ms(*lease)),
            Op::Progress { task, note } => write!(f, "progress of {task}: {note}"),
            Op::Complete(tasks) => {
                let task = |(task, result): &(Held, Option<&str>)| match result {
                    Some(result) => format!("{task} with {result}"),
                    None => task.to_string(),
                };
                write!(f, "complete {}", list(tasks.iter().map(task)))
            }
            Op::Revoke(tasks) => write!(f, "revoke {}", list(tasks)),
            Op::Retry { by, tasks } => write!(f, "retry{by} {}", list(tasks)),
            Op::Archive { by, tasks } => write!(f, "archive{by} {}", list(tasks)),
            Op::Defer(tasks) => write!(f, "defer {}", list(tasks)),
            Op::Release(tasks) => write!(f, "release {}", list(tasks)),
            Op::Promote => f.write_str("promote"),
            Op::Expire => f.write_str("expire"),
            Op::Tick(Tick {
                harmless,
                vouched,
                grace,
                skew,
            }) => {
                let (harmless, vouched) = (ms(*harmless), ms(*vouched));
                let (grace, skew) = (ms(*grace), ms(*skew));
                write!(
                    f,
                    "tick, harmless {harmless:?}, vouched {vouched:?}, grace {grace:?}, skew {skew:?}"
                )
            }
            Op::Adopt(ids) => write!(f, "adopt {}", list(ids)),
            Op::Sweep(Sweep {
                cap,
                age,
                keep_for_hooks,
                pass_over,
                sheds,
            }) => {
                let (age, keep) = (ms(*age), ms(*keep_for_hooks));
                let shedding = if *sheds { ", shedding all" } else { "" };
                write!(
                    f,
                    "sweep down to {cap} and {age:?}, for hooks {keep:?}, passing over {pass_over}{shedding}"
                )
            }
            Op::RegisterHooks { kinds, lasts } => {
                let (kinds, lasts) = (list(kinds), ms(*lasts));
                write!(f, "register hooks of {kinds} for {lasts:?}")
            }
            Op::LapseHooks(lasts) => {
                let lasts = ms(*lasts);
                write!(f, "let hooks lapse, those without a time in {lasts:?}")
            }
            Op::RegisterOldHook(kind) => write!(f, "register a hook of {kind} as 0.1"),
            Op::TakeHooks(TakeHooks { room, hold, kinds }) => {
                let (hold, kinds) = (ms(*hold), list(kinds));
                write!(f, "take up to {room} hooks of {kinds} for {hold:?}")
            }
            Op::EndHooks(ends) => write!(f, "end hooks {}", list(ends)),
            Op::Wait { id, patience } => write!(f, "wait {:?} for {id}", ms(*patience)),
            Op::Run(id) => write!(f, "run {id}"),
            Op::Edit { id, payload } => write!(f, "edit {id}: {payload}"),
            Op::End {
                id,
                wish,
                is_cancel,
            } => {
                let who = if *is_cancel {
                    "cancel"
                } else {
                    "operator's end of"
                };
                let wish = match wish {
                    EndWish::Decide => "its handler decides",
                    EndWish::Archive => "archive",
                    EndWish::Delete => "delete",
                };
                write!(f, "{who} {id}: {wish}")
            }
            Op::Look(id) => write!(f, "look at {id}"),
            Op::Pause => f.write_str("pause"),
            Op::Resume => f.write_str("resume"),
            Op::TakeToken => f.write_str("take the wake token"),
            Op::Publish(server) => write!(f, "{server} shows itself"),
            Op::Retire(server) => write!(f, "{server} retires"),
            Op::Clock(clock) => write!(f, "clock {clock}"),
            Op::Spoil(id, damage) => write!(f, "spoil {id}: {damage:?}"),
        }
    }
}

fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

fn signed(ms: i64) -> String {
    let sign = if ms < 0 { '-' } else { '+' };
    format!("{sign}{:?}", Duration::from_millis(ms.unsigned_abs()))
}

fn list(items: impl IntoIterator<Item = impl Display>) -> String {
    let items: Vec<_> = items.into_iter().map(|item| item.to_string()).collect();
    items.join(" | ")
}

impl Display for New {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({} {}", self.id, self.kind, self.payload)?;
        match self.due {
            Due::Now => {}
            Due::After(delay) => write!(f, ", in {:?}", ms(delay))?,
            Due::At(time) => write!(f, ", at now {}", signed(time))?,
        }
        if self.own_id {
            f.write_str(", own id")?;
        }
        if self.priority > 0 {
            write!(f, ", priority {}", self.priority)?;
        }
        if let Some(retries) = self.max_retry {
            write!(f, ", max retry {retries}")?;
        }
        if let Some(timeout) = self.timeout {
            write!(f, ", timeout {:?}", ms(timeout))?;
        }
        if let Some(time) = self.deadline {
            write!(f, ", deadline now {}", signed(time))?;
        }
        if let Some(time) = self.start_before {
            write!(f, ", start before now {}", signed(time))?;
        }
        if self.retention > 0 {
            write!(f, ", retention {:?}", ms(self.retention))?;
        }
        if let Some(unique) = self.unique {
            write!(f, ", {unique}")?;
        }
        if self.policy {
            f.write_str(", policy")?;
        }
        if self.header {
            f.write_str(", header")?;
        }
        f.write_str(")")
    }
}

impl Display for Unique {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "lock {}/{}", self.mode.name(), self.key.unwrap_or("own"))?;
        if self.across_kinds {
            f.write_str(" across kinds")?;
        }
        if let Some(time) = self.lasts {
            write!(f, " for {:?}", ms(time))?;
        }
        if let Some(wait) = self.max_wait {
            write!(f, " waiting {:?}", ms(wait))?;
        }
        Ok(())
    }
}

impl Display for Held {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(self.id)?;
        match self.lease {
            Which::Current => Ok(()),
            Which::Former(n) => write!(f, " (lease {n} before)"),
            Which::OtherServer => f.write_str(" (another server's lease)"),
            Which::OtherNumber => f.write_str(" (another number)"),
            Which::Found => f.write_str(" (as found)"),
        }
    }
}

impl Display for Settler {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Settler::Holder => Ok(()),
            Settler::Recoverer { skew } => write!(f, ", recovering with skew {:?},", ms(*skew)),
        }
    }
}

impl Display for Retry {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{} in {:?}", self.task, ms(self.delay))?;
        if self.spends {
            f.write_str(", spent")?;
        }
        row(f, "lost", self.lost)?;
        row(f, "undecodable", self.undecodable)
    }
}

impl Display for Archive {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.task, self.reason.as_str())?;
        row(f, "lost", self.lost)
    }
}

fn row(f: &mut Formatter<'_>, what: &str, times: Option<u32>) -> fmt::Result {
    match times {
        Some(n) => write!(f, ", {what} {n}"),
        None => Ok(()),
    }
}

impl Display for Defer {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let started = if self.started { ", started" } else { "" };
        write!(f, "{} by {:?}{started}", self.task, ms(self.delay))
    }
}

impl Display for Release {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let started = if self.started { ", started" } else { "" };
        write!(f, "{}{started}", self.task)
    }
}

impl Display for HookDone {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let late = if self.late { " (the hold before)" } else { "" };
        write!(f, "{}{late} {:?}", self.id, self.end)
    }
}

impl Display for Clock {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Clock::Forward(us) => write!(f, "+{:?}", Duration::from_micros(*us)),
            Clock::Back(time) => write!(f, "-{:?}", ms(*time)),
            Clock::To(event, 0) => write!(f, "to the first {event:?}"),
            Clock::To(event, time) => write!(f, "to the first {event:?} {}", signed(*time)),
        }
    }
}
