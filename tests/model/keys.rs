//! What Redis must hold, by key.

use std::collections::BTreeMap;

use crate::model::{Health, Model, Task};
use crate::system::{BASE, PREFIX, SERVER_FIELD};

pub type Keys = BTreeMap<String, Key>;

#[derive(Clone, Debug, PartialEq)]
pub struct Key {
    pub value: Value,
    /// In ms.
    pub expires_in: Option<u64>,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    Text(String),
    Hash(BTreeMap<String, String>),
    /// Member → score.
    Sorted(BTreeMap<String, i64>),
    /// Its length.
    List(usize),
    /// Something that windlass has no use for.
    Other(String),
}

/// How long the counters of a day are kept, in ms.
const DAY_LIVES: u64 = 90 * 24 * 3600 * 1000;
/// Longer values are compared by their lengths.
const LONG: usize = 200;

pub fn shortened(value: String) -> String {
    if value.len() > LONG {
        by_length(value.len())
    } else {
        value
    }
}

pub fn by_length(bytes: usize) -> String {
    format!("<{bytes} bytes>")
}

pub fn expected(model: &Model) -> Keys {
    let mut keys = Expected(Keys::new());
    for (id, task) in &model.tasks {
        if let Some((set, score)) = task.set() {
            keys.member(set, id, score);
        }
        if let Some(lease) = task.lease() {
            keys.field("leases", id, lease.text());
        }
        if let Some(deadline) = task.deadline_entry() {
            keys.member("deadlines", id, deadline as i64);
        }
        if let Some(not_before) = task.hook {
            keys.member("hooks", id, not_before as i64);
        }
        keys.record(id, task);
    }
    for (key, lock) in &model.locks {
        let left = lock.expires.map(|time| (time - model.elapsed) / 1000);
        let holder = format!("{} {}", lock.mode.name(), lock.id);
        keys.put(&format!("unique:{key}"), Value::Text(holder), left);
    }
    for (id, until) in &model.waiters {
        keys.member("waiters", id, *until as i64);
    }
    for id in &model.aside {
        keys.put(&format!("malformed:{id}"), Value::List(1), None);
    }
    keys.meta(model);
    for (name, n) in &model.stats.total {
        keys.field("stats", name, n.to_string());
    }
    for (day, counters) in &model.stats.days {
        let fields = counters
            .iter()
            .map(|(name, n)| (name.clone(), n.to_string()));
        let fields = Value::Hash(fields.collect());
        keys.put(&format!("stats:{day}"), fields, Some(DAY_LIVES));
    }
    if model.wake {
        keys.put("wake", Value::List(1), None);
    }
    keys.servers(model);
    keys.0
}

struct Expected(Keys);

impl Expected {
    /// A key of the queue.
    fn put(&mut self, name: &str, value: Value, expires_in: Option<u64>) {
        let key = Key { value, expires_in };
        self.0.insert(format!("{BASE}:{name}"), key);
    }

    fn field(&mut self, key: &str, field: &str, value: String) {
        let key = self.0.entry(format!("{BASE}:{key}")).or_insert(Key {
            value: Value::Hash(BTreeMap::new()),
            expires_in: None,
        });
        if let Value::Hash(fields) = &mut key.value {
            fields.insert(field.to_owned(), value);
        }
    }

    fn member(&mut self, key: &str, id: &str, score: i64) {
        self.member_of(format!("{BASE}:{key}"), id, score);
    }

    fn member_of(&mut self, key: String, member: &str, score: i64) {
        let key = self.0.entry(key).or_insert(Key {
            value: Value::Sorted(BTreeMap::new()),
            expires_in: None,
        });
        if let Value::Sorted(members) = &mut key.value {
            members.insert(member.to_owned(), score);
        }
    }

    fn record(&mut self, id: &str, task: &Task) {
        let key = format!("t:{id}");
        match task.health {
            Health::Missing => {}
            Health::NoHash => self.put(&key, Value::List(1), None),
            Health::Sound | Health::NoKind => {
                for (field, value) in task.fields() {
                    self.field(&key, field, value);
                }
            }
        }
    }

    fn meta(&mut self, model: &Model) {
        let meta = &model.meta;
        let fields = [
            ("schema", meta.schema.then_some(1)),
            ("lease", Some(meta.lease).filter(|&n| n > 0)),
            ("paused", meta.paused.then_some(1)),
            ("pulse", meta.pulse),
            ("grace_until", meta.grace_until),
        ];
        for (field, value) in fields {
            if let Some(value) = value {
                self.field("meta", field, value.to_string());
            }
        }
        for (kind, until) in &meta.hooked {
            let until = until.unwrap_or(1).to_string();
            self.field("meta", &format!("hook:{kind}"), until);
        }
    }

    fn servers(&mut self, model: &Model) {
        for (server, until) in &model.servers {
            self.member_of(format!("{PREFIX}:servers"), server, *until as i64);
        }
        if let Some(index) = self.0.get_mut(&format!("{PREFIX}:servers")) {
            index.expires_in = Some(model.index_lives);
        }
        for server in &model.alive {
            let (field, value) = SERVER_FIELD;
            let fields = BTreeMap::from([(field.to_owned(), value.to_owned())]);
            let key = Key {
                value: Value::Hash(fields),
                expires_in: Some(crate::model::SERVER_LIVES),
            };
            self.0.insert(format!("{PREFIX}:server:{server}"), key);
        }
    }
}
