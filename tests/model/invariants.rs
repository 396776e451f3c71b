//! What must hold of Redis alone, whatever the model says.

use std::collections::{BTreeMap, BTreeSet};

use crate::keys::{Keys, Value};
use crate::support::STATES;
use crate::system::BASE;

/// What a run may have broken on purpose, and the largest lease number that was seen.
#[derive(Default)]
pub struct Seen {
    /// Tasks that were spoilt, ever.
    pub spoilt: BTreeSet<String>,
    lease: u64,
}

/// What does not hold, one sentence each.
pub fn broken(found: &Keys, seen: &mut Seen) -> Vec<String> {
    let view = View::new(found);
    let mut broken = Vec::new();
    view.states(seen, &mut broken);
    view.leases(seen, &mut broken);
    view.locks(seen, &mut broken);
    view.deadlines(seen, &mut broken);
    view.hooks(&mut broken);
    view.lease_number(seen, &mut broken);
    broken
}

type Scores = BTreeMap<String, i64>;
type Fields = BTreeMap<String, String>;

static NO_SCORES: Scores = Scores::new();
static NO_FIELDS: Fields = Fields::new();

struct View<'a> {
    /// The queue's keys, by their names after the base.
    keys: BTreeMap<&'a str, &'a Value>,
    /// The ids that stand in a state or have a record, and the states.
    ids: BTreeMap<&'a str, Vec<&'static str>>,
}

impl<'a> View<'a> {
    fn new(found: &'a Keys) -> Self {
        let keys = found.iter().filter_map(|(name, key)| {
            let name = name.strip_prefix(BASE)?.strip_prefix(':')?;
            Some((name, &key.value))
        });
        let mut view = Self {
            keys: keys.collect(),
            ids: BTreeMap::new(),
        };
        for state in STATES {
            for id in view.sorted(state).keys() {
                view.ids.entry(id).or_default().push(state);
            }
        }
        for name in view.keys.keys() {
            if let Some(id) = name.strip_prefix("t:") {
                view.ids.entry(id).or_default();
            }
        }
        view
    }

    fn sorted(&self, name: &str) -> &'a Scores {
        match self.keys.get(name) {
            Some(Value::Sorted(members)) => members,
            _ => &NO_SCORES,
        }
    }

    fn hash(&self, name: &str) -> &'a Fields {
        match self.keys.get(name) {
            Some(Value::Hash(fields)) => fields,
            _ => &NO_FIELDS,
        }
    }

    fn record(&self, id: &str) -> &'a Fields {
        self.hash(&format!("t:{id}"))
    }

    fn states_of(&self, id: &str) -> &[&'static str] {
        self.ids.get(id).map_or(&[], Vec::as_slice)
    }

    /// A record exists if and only if its id is in exactly one state set.
    fn states(&self, seen: &Seen, broken: &mut Vec<String>) {
        for (&id, states) in &self.ids {
            let has_record = self.keys.contains_key(&*format!("t:{id}"));
            let fits = states.len() == 1 && has_record;
            if states.len() > 1 || !fits && !seen.spoilt.contains(id) {
                let has = if has_record { "a" } else { "no" };
                broken.push(format!("{id} has {has} record and stands in {states:?}"));
            }
        }
    }

    /// `leases` has an entry for an id if and only if it is active, but for what was adopted; only
    /// there a cancel is noted.
    fn leases(&self, seen: &Seen, broken: &mut Vec<String>) {
        let leases = self.hash("leases");
        let ids = self.ids.keys().copied();
        let ids: BTreeSet<_> = ids.chain(leases.keys().map(|id| &**id)).collect();
        for id in ids {
            let is_active = self.states_of(id) == ["active"];
            if seen.spoilt.contains(id) {
                continue;
            }
            if is_active != leases.contains_key(id) {
                broken.push(format!(
                    "{id} is active: {is_active}, and its lease is not so"
                ));
            }
            if !is_active && self.record(id).contains_key("cancel") {
                broken.push(format!("{id} is not active and still cancelled"));
            }
        }
    }

    /// A lock that is not for a time is held only by a task that lives and names it; one until the
    /// start only by one that has not started.
    fn locks(&self, seen: &Seen, broken: &mut Vec<String>) {
        for (name, value) in &self.keys {
            let (Some(key), Value::Text(text)) = (name.strip_prefix("unique:"), value) else {
                continue;
            };
            let (mode, id) = text.split_once(' ').unwrap_or(("", ""));
            let names = self.record(id).get("unique") == Some(&format!("{mode}:{key}"));
            let states = self.states_of(id);
            let may_hold = match states {
                ["active"] => mode != "started",
                ["pending" | "scheduled" | "retry"] => true,
                _ => false,
            };
            if mode != "time" && !(names && may_hold) && !seen.spoilt.contains(id) {
                broken.push(format!("{id} in {states:?} holds the lock {key} as {mode}"));
            }
        }
    }

    /// `deadlines` has exactly the waiting tasks that have one, at min(start_before if never started,
    /// deadline).
    fn deadlines(&self, seen: &Seen, broken: &mut Vec<String>) {
        let deadlines = self.sorted("deadlines");
        let ids = self.ids.keys().copied();
        let ids: BTreeSet<_> = ids.chain(deadlines.keys().map(|id| &**id)).collect();
        for id in ids {
            let record = self.record(id);
            let time = |field: &str| record.get(field).and_then(|ms| ms.parse::<i64>().ok());
            let start_before = time("start_before").filter(|_| !record.contains_key("started_at"));
            let waits = matches!(self.states_of(id), ["pending" | "scheduled" | "retry"]);
            let wanted = time("deadline").into_iter().chain(start_before).min();
            let wanted = wanted.filter(|_| waits);
            let found = deadlines.get(id).copied();
            if found != wanted && !seen.spoilt.contains(id) {
                broken.push(format!(
                    "{id}'s deadline is {found:?} and must be {wanted:?}"
                ));
            }
        }
    }

    /// `hooks` has only archived tasks.
    fn hooks(&self, broken: &mut Vec<String>) {
        let archived = self.sorted("archived");
        for id in self.sorted("hooks").keys() {
            if !archived.contains_key(id) {
                broken.push(format!("{id} owes a hook and is not archived"));
            }
        }
    }

    /// The lease number grows, and no lease has a larger one.
    fn lease_number(&self, seen: &mut Seen, broken: &mut Vec<String>) {
        let last = self.hash("meta").get("lease").and_then(|n| n.parse().ok());
        let last: u64 = last.unwrap_or(0);
        if last < seen.lease {
            broken.push(format!(
                "the lease number fell from {} to {last}",
                seen.lease
            ));
        }
        seen.lease = last;
        for (id, lease) in self.hash("leases") {
            let number = lease.split('@').next().and_then(|n| n.parse::<u64>().ok());
            if number.is_none_or(|number| number > last) {
                broken.push(format!(
                    "{id}'s lease is {lease}, and the last number {last}"
                ));
            }
        }
    }
}
