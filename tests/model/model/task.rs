use std::collections::BTreeMap;
use std::time::Duration;

use crate::broker::{Malformed, Record};
use crate::defaults;
use crate::op::{Mode, Server};
use crate::shapes;

#[derive(Clone, Debug)]
pub struct Task {
    pub stands: Stands,
    pub health: Health,
    /// When its owed hook may be run, in ms.
    pub hook: Option<u64>,

    pub kind: &'static str,
    pub payload: &'static str,
    pub priority: u8,
    pub retried: u32,
    pub max_retry: Option<u32>,
    pub timeout: Option<u64>,
    pub has_policy: bool,
    pub deadline: Option<u64>,
    pub start_before: Option<u64>,
    pub retention: u64,
    /// Mode and key of its lock.
    pub unique: Option<(Mode, String)>,
    pub lock_time: Option<u64>,
    pub replace_until: Option<u64>,
    /// A newer task has taken its lock while it ran.
    pub superseded: bool,
    pub has_header: bool,
    pub enqueued_at: Option<u64>,
    pub started_at: Option<u64>,
    pub lost: Option<u32>,
    pub undecodable: Option<u32>,
    pub hook_failed: u32,
    pub last_error: Option<&'static str>,
    pub last_failed_at: Option<u64>,
    pub completed_at: Option<u64>,
    pub result: Option<&'static str>,
    pub progress: Option<&'static str>,
    pub cancel: Option<&'static str>,
    pub reason: Option<&'static str>,
}

/// The state set it stands in, with its score.
#[derive(Clone, Debug)]
pub enum Stands {
    Pending(i64),
    Scheduled(u64),
    Retry(u64),
    /// An adopted task has no lease.
    Active {
        expiry: u64,
        lease: Option<Lease>,
    },
    Archived(u64),
    Completed(u64),
    /// In none, though it has a record: what is left of it in `leases` or `deadlines`.
    Nowhere {
        lease: Option<Lease>,
        deadline: Option<u64>,
    },
}

#[derive(Clone, Debug)]
pub struct Lease {
    pub number: u64,
    pub server: Server,
    pub claimed_at: u64,
    pub place: i64,
}

/// Of its record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Health {
    Sound,
    Missing,
    NoKind,
    NoHash,
}

impl Lease {
    pub fn holder(&self) -> String {
        format!("{}@{}", self.number, self.server)
    }

    pub fn text(&self) -> String {
        format!("{} {} {}", self.holder(), self.claimed_at, self.place)
    }
}

impl Task {
    pub fn set(&self) -> Option<(&'static str, i64)> {
        Some(match self.stands {
            Stands::Pending(place) => ("pending", place),
            Stands::Scheduled(due) => ("scheduled", due as i64),
            Stands::Retry(due) => ("retry", due as i64),
            Stands::Active { expiry, .. } => ("active", expiry as i64),
            Stands::Archived(died) => ("archived", died as i64),
            Stands::Completed(until) => ("completed", until as i64),
            Stands::Nowhere { .. } => return None,
        })
    }

    pub fn is_active(&self) -> bool {
        matches!(self.stands, Stands::Active { .. })
    }

    pub fn waits(&self) -> bool {
        matches!(
            self.stands,
            Stands::Pending(_) | Stands::Scheduled(_) | Stands::Retry(_)
        )
    }

    pub fn has_ended(&self) -> bool {
        matches!(self.stands, Stands::Archived(_) | Stands::Completed(_))
    }

    pub fn is_sound(&self) -> bool {
        self.health == Health::Sound
    }

    /// What becomes of it when its lease ends is not for its handler alone to say.
    pub fn is_fated(&self) -> bool {
        self.superseded || self.cancel.is_some()
    }

    /// Not what has ended: nothing but the janitor moves that.
    pub fn can_be_spoilt(&self) -> bool {
        self.is_sound() && self.set().is_some() && !self.has_ended()
    }

    pub fn lease(&self) -> Option<&Lease> {
        match &self.stands {
            Stands::Active { lease, .. } | Stands::Nowhere { lease, .. } => lease.as_ref(),
            _ => None,
        }
    }

    pub fn due(&self) -> Option<u64> {
        match self.stands {
            Stands::Scheduled(due) | Stands::Retry(due) => Some(due),
            _ => None,
        }
    }

    /// When it is given up if it waits, in ms.
    pub fn wait_deadline(&self) -> Option<u64> {
        let start_before = self.start_before.filter(|_| self.started_at.is_none());
        self.deadline.into_iter().chain(start_before).min()
    }

    /// Its score in `deadlines`.
    pub fn deadline_entry(&self) -> Option<u64> {
        match self.stands {
            Stands::Nowhere { deadline, .. } => deadline,
            _ => self.wait_deadline().filter(|_| self.waits()),
        }
    }

    /// The record's hash, with a large payload by its length.
    pub fn fields(&self) -> BTreeMap<&'static str, String> {
        fn text<T: ToString>(value: Option<T>) -> Option<String> {
            value.map(|value| value.to_string())
        }
        let fields = [
            (
                "kind",
                text(Some(self.kind).filter(|_| self.health != Health::NoKind)),
            ),
            ("payload", Some(shapes::shown(self.payload))),
            ("priority", text(Some(self.priority).filter(|&n| n > 0))),
            ("retried", text(Some(self.retried).filter(|&n| n > 0))),
            ("max_retry", text(self.max_retry)),
            ("timeout", text(self.timeout)),
            ("policy", text(self.has_policy.then_some(shapes::POLICY))),
            ("deadline", text(self.deadline)),
            ("start_before", text(self.start_before)),
            ("retention", text(Some(self.retention).filter(|&n| n > 0))),
            (
                "unique",
                self.unique
                    .as_ref()
                    .map(|(mode, key)| format!("{}:{key}", mode.name())),
            ),
            ("lock_time", text(self.lock_time)),
            ("replace_until", text(self.replace_until)),
            ("superseded", text(self.superseded.then_some(1))),
            ("h:trace", text(self.has_header.then_some("t1"))),
            ("enqueued_at", text(self.enqueued_at)),
            ("started_at", text(self.started_at)),
            ("lost", text(self.lost)),
            ("undecodable", text(self.undecodable)),
            (
                "hook_failed",
                text(Some(self.hook_failed).filter(|&n| n > 0)),
            ),
            ("last_error", text(self.last_error)),
            ("last_failed_at", text(self.last_failed_at)),
            ("completed_at", text(self.completed_at)),
            ("result", text(self.result)),
            ("progress", text(self.progress)),
            ("cancel", text(self.cancel)),
            ("reason", text(self.reason)),
        ];
        fields
            .into_iter()
            .filter_map(|(field, value)| Some((field, value?)))
            .collect()
    }

    /// As a claim hands it out.
    pub fn record(&self) -> Result<Record, Malformed> {
        Ok(Record {
            kind: self.kind.to_owned(),
            payload: shapes::bytes(self.payload),
            retried: self.retried,
            max_retry: self.max_retry.unwrap_or(defaults::MAX_RETRY),
            timeout: match self.timeout {
                None => Some(defaults::TASK_TIMEOUT),
                Some(0) => None,
                Some(ms) => Some(Duration::from_millis(ms)),
            },
            deadline: self.deadline,
            policy: self
                .has_policy
                .then(|| shapes::POLICY.parse().expect("the policy is valid")),
            headers: self
                .has_header
                .then(|| ("trace".to_owned(), "t1".to_owned()))
                .into_iter()
                .collect(),
            undecodable: self.undecodable.unwrap_or(0),
            keeps_result: self.retention > 0,
            has_end_effects: self.has_end_effects(),
        })
    }

    pub fn has_end_effects(&self) -> bool {
        self.retention > 0 || self.unique.is_some()
    }

    /// What its fields cost a claim beside the bytes of their values.
    pub fn fields_size(&self) -> usize {
        self.fields().keys().map(|field| field.len() + 64).sum()
    }

    /// Bytes of all its values.
    pub fn size(&self) -> usize {
        let fields = self.fields();
        let others = fields.iter().filter(|(field, _)| **field != "payload");
        let others: usize = others.map(|(_, value)| value.len()).sum();
        others + shapes::bytes(self.payload).len()
    }
}

impl Mode {
    pub fn name(self) -> &'static str {
        match self {
            Mode::Done => "done",
            Mode::Started => "started",
            Mode::Time => "time",
            Mode::Replace => "replace",
        }
    }
}
