//! How tasks end, and what they hold while they live.

use super::{Health, Lock, Model, Stands};
use crate::broker::{ArchiveReason, ExpiredTask};
use crate::op::{Id, Mode};
use crate::shapes::{ERROR, LATE, LATE_AFTER_ERROR};

impl Model {
    /// Frees the lock that the task holds, unless it is for a time.
    pub(super) fn free_lock(&mut self, id: Id) {
        // What is no hash names no lock.
        let task = self
            .tasks
            .get(id)
            .filter(|task| task.health != Health::NoHash);
        let unique = task.and_then(|task| task.unique.clone());
        if let Some((mode, key)) = unique
            && mode != Mode::Time
            && self.locks.get(&key).is_some_and(|lock| lock.id == id)
        {
            self.locks.remove(&key);
        }
    }

    /// Gives the task the lock that it names, until its longest time after `due`, in ms.
    pub(super) fn take_lock(&mut self, id: Id, due: u64) {
        let task = &self.tasks[id];
        if let Some((mode, key)) = task.unique.clone() {
            self.lock(key, mode, id, task.lock_time, due);
        }
    }

    pub(super) fn lock(&mut self, key: String, mode: Mode, id: Id, lasts: Option<u64>, due: u64) {
        let wait = due.saturating_sub(self.now_ms());
        let expires = lasts.map(|time| self.elapsed + 1000 * (time + wait));
        self.locks.insert(key, Lock { mode, id, expires });
    }

    /// A lock that ends with a task's start is taken again by one that waits once more, if it is free.
    pub(super) fn retake_lock(&mut self, id: Id, due: u64) {
        let unique = &self.tasks[id].unique;
        if let Some((Mode::Started, key)) = unique
            && !self.locks.contains_key(key)
        {
            self.take_lock(id, due);
        }
    }

    /// A task that was archived for its deadline, as replies name it.
    pub(super) fn expired(&self, id: Id) -> ExpiredTask {
        ExpiredTask {
            id: id.to_owned(),
            kind: self.tasks[id].kind.to_owned(),
            error: self.tasks[id].last_error.unwrap_or_default().to_owned(),
        }
    }

    /// Archives a task.
    pub(super) fn bury(&mut self, id: Id, reason: &'static str, owes_hook: bool) {
        self.free_lock(id);
        let now = self.now_ms();
        let task = self.tasks.get_mut(id).expect("who buries has looked");
        task.stands = Stands::Archived(now);
        task.reason = Some(reason);
        if reason == ArchiveReason::DeadlinePassed.as_str() {
            task.last_error = match task.last_error {
                None => Some(LATE),
                Some(ERROR) => Some(LATE_AFTER_ERROR),
                late => late,
            };
        }
        task.cancel = None;
        task.hook = (owes_hook && self.meta.hooked.contains_key(task.kind)).then_some(now);
        self.tell(id);
        self.count("archived", 1);
        self.count(format!("archived_{reason}"), 1);
    }

    /// Deletes a task.
    pub(super) fn erase(&mut self, id: Id, counter: &str) {
        self.free_lock(id);
        self.tasks.remove(id);
        self.tell(id);
        self.count(counter, 1);
    }

    /// Tells those who wait for the task's end.
    pub(super) fn tell(&mut self, id: Id) {
        if self.waiters.remove(id).is_some() {
            self.published.push(("{q}:ended".to_owned(), id.to_owned()));
        }
    }

    /// Takes a task whose record is spoilt to where it stops nobody. Answers whether it is one.
    pub(super) fn set_aside_if_broken(&mut self, id: Id, malformed: &mut Vec<String>) -> bool {
        let now = self.now_ms();
        let task = self.tasks.get_mut(id).expect("who sets aside has looked");
        match task.health {
            Health::Sound => return false,
            Health::Missing => {
                self.tasks.remove(id);
                self.tell(id);
                self.count("missing", 1);
                return true;
            }
            Health::NoKind => {
                task.stands = Stands::Archived(now);
                task.reason = Some("malformed");
                task.last_failed_at = Some(now);
                self.free_lock(id);
            }
            Health::NoHash => {
                self.tasks.remove(id);
                self.aside.insert(id);
            }
        }
        malformed.push(id.to_owned());
        self.tell(id);
        self.count("malformed", 1);
        true
    }
}
