use super::{Health, Lock, Model, Stands, Task};
use crate::answer::Answer;
use crate::broker::EnqueueAnswer;
use crate::op::{Due, Id, Mode, New, Unique};
use crate::shapes;

impl Model {
    /// One after the other, as if each came alone, but for the places in pending.
    pub(super) fn enqueue(&mut self, batch: &[New]) -> Answer {
        let due_before = self.next_due();
        let mut became_pending = false;
        let mut answers = Vec::new();
        for (i, task) in batch.iter().enumerate() {
            let answer = self.admit(task);
            let (count, moved) = match &answer {
                EnqueueAnswer::New => {
                    self.create(task, i + 1);
                    ("enqueued", task.id)
                }
                EnqueueAnswer::Replaced { holder } => {
                    let holder = self.known(holder);
                    self.replace(holder, task, i + 1);
                    ("replaced", holder)
                }
                EnqueueAnswer::Exists | EnqueueAnswer::Duplicate { .. } => ("duplicates", ""),
            };
            self.count(count, 1);
            let moved = self.tasks.get(moved);
            became_pending |= moved.is_some_and(|task| matches!(task.stands, Stands::Pending(_)));
            answers.push(answer);
        }
        let due = self.next_due();
        if became_pending || due.is_some_and(|due| due_before.is_none_or(|before| due < before)) {
            self.wake = true;
        }
        self.meta.schema = true;
        Answer::Enqueued(answers)
    }

    fn known(&self, id: &str) -> Id {
        self.tasks.get_key_value(id).expect("a holder exists").0
    }

    fn admit(&mut self, new: &New) -> EnqueueAnswer {
        if self.tasks.contains_key(new.id) {
            return EnqueueAnswer::Exists;
        }
        let Some(unique) = new.unique else {
            return EnqueueAnswer::New;
        };
        let Some(lock) = self.lock_in_force(&key(new, unique)) else {
            return EnqueueAnswer::New;
        };
        let holder = lock.id.to_owned();
        let both_replace = unique.mode == Mode::Replace && lock.mode == Mode::Replace;
        match self.tasks.get_mut(lock.id) {
            Some(task) if both_replace && task.kind == new.kind => {
                if task.waits() {
                    return EnqueueAnswer::Replaced { holder };
                }
                // While the holder runs, the next one takes the lock over.
                task.superseded = true;
                EnqueueAnswer::New
            }
            _ => EnqueueAnswer::Duplicate { holder },
        }
    }

    /// A lock, unless its holder has ended, cannot be used or names another one. A lock for a time is
    /// held whatever becomes of its task.
    pub(super) fn lock_in_force(&self, key: &str) -> Option<Lock> {
        let lock = self.locks.get(key)?;
        let holds = |task: &Task| {
            let names = |(mode, named): &(Mode, String)| *mode == lock.mode && named == key;
            let lives = task.set().is_some() && !task.has_ended() && task.is_sound();
            lives && task.unique.as_ref().is_some_and(names)
        };
        let in_force = lock.mode == Mode::Time || self.tasks.get(lock.id).is_some_and(holds);
        in_force.then(|| lock.clone())
    }

    fn due_ms(&self, due: Due) -> u64 {
        match due {
            Due::Now => self.now_ms(),
            Due::After(ms) => self.after(ms),
            Due::At(from_now) => self.at(from_now),
        }
    }

    fn stands(&self, due: u64, i: usize, priority: u8) -> Stands {
        if due > self.now_ms() {
            Stands::Scheduled(due)
        } else {
            Stands::Pending(self.place(i, priority))
        }
    }

    fn create(&mut self, new: &New, i: usize) {
        let unique = new.unique;
        let max_wait = unique
            .filter(|unique| unique.mode == Mode::Replace)
            .and_then(|unique| unique.max_wait);
        let due = self.due_ms(new.due);
        let due = max_wait.map_or(due, |wait| due.min(self.now_ms() + wait));
        let task = Task {
            stands: self.stands(due, i, new.priority),
            health: Health::Sound,
            hook: None,
            kind: new.kind,
            payload: new.payload,
            priority: new.priority,
            retried: 0,
            max_retry: new.max_retry,
            timeout: new.timeout,
            has_policy: new.policy,
            deadline: new.deadline.map(|time| self.at(time)),
            start_before: new.start_before.map(|time| self.at(time)),
            retention: new.retention,
            unique: unique.map(|unique| (unique.mode, key(new, unique))),
            // A lock for a time is never taken again.
            lock_time: unique
                .filter(|unique| unique.mode != Mode::Time)
                .and_then(|unique| unique.lasts),
            replace_until: max_wait.map(|wait| self.now_ms() + wait),
            superseded: false,
            has_header: new.header,
            enqueued_at: new.own_id.then(|| self.now_ms()),
            started_at: None,
            lost: None,
            undecodable: None,
            hook_failed: 0,
            last_error: None,
            last_failed_at: None,
            completed_at: None,
            result: None,
            progress: None,
            cancel: None,
            reason: None,
        };
        self.tasks.insert(new.id, task);
        if let Some(unique) = unique {
            let key = key(new, unique);
            self.lock(key, unique.mode, new.id, unique.lasts, due);
        }
    }

    /// The holder becomes the new task, but for its id and its longest wait.
    fn replace(&mut self, holder: Id, new: &New, i: usize) {
        let wanted = self.due_ms(new.due).max(self.now_ms());
        let old = self.tasks[holder].clone();
        let due = old.replace_until.map_or(wanted, |limit| wanted.min(limit));
        let id = New {
            id: holder,
            ..new.clone()
        };
        self.create(&id, i);
        let stands = self.stands(due, i, new.priority);
        let task = self.tasks.get_mut(holder).expect("it was made");
        task.stands = stands;
        task.replace_until = old.replace_until;
        task.enqueued_at = old.enqueued_at;
        self.take_lock(holder, due);
    }
}

fn key(new: &New, unique: Unique) -> String {
    match unique.key {
        Some(key) if unique.across_kinds => format!("{{{key}}}"),
        Some(key) => format!("{}{{{key}}}", new.kind),
        None => sha1(new.kind, new.payload),
    }
}

/// The only SHA-1 at hand is that of scripts, whose text it does not look into.
fn sha1(kind: &str, payload: &str) -> String {
    let mut text = kind.to_owned() + "\0";
    text += std::str::from_utf8(&shapes::bytes(payload)).expect("payloads are text");
    redis::Script::new(&text).get_hash().to_owned()
}
