//! What is done to one task by name.

use super::{Health, Model, Stands};
use crate::answer::{Answer, Looked};
use crate::broker::operator::{Answer as ChangeOutcome, EndWish};
use crate::op::{Id, Mode};

impl Model {
    pub(super) fn run(&mut self, id: Id) -> ChangeOutcome {
        let Some(task) = self.tasks.get(id).filter(|task| task.is_sound()) else {
            return ChangeOutcome::Missing;
        };
        let was_archived = match task.stands {
            Stands::Nowhere { .. } => return ChangeOutcome::Missing,
            Stands::Active { .. } => return ChangeOutcome::Active,
            Stands::Completed(_) => return ChangeOutcome::Completed,
            Stands::Pending(_) => return ChangeOutcome::Already,
            Stands::Scheduled(_) | Stands::Retry(_) => false,
            Stands::Archived(_) => true,
        };
        let place = self.place(1, task.priority);
        if was_archived
            && let Some((mode, key)) = &task.unique
            && *mode != Mode::Time
        {
            if let Some(lock) = self.lock_in_force(key)
                && lock.id != id
            {
                let holder = lock.id.to_owned();
                return ChangeOutcome::Duplicate { holder };
            }
            self.take_lock(id, self.now_ms());
        }
        let now = self.now_ms();
        let task = self.tasks.get_mut(id).expect("it was found");
        task.stands = Stands::Pending(place);
        task.deadline = task.deadline.filter(|&at| at > now);
        task.start_before = task.start_before.filter(|&at| at > now);
        if was_archived {
            task.hook = None;
            (task.reason, task.lost, task.retried) = (None, None, 0);
            (task.undecodable, task.hook_failed) = (None, 0);
        }
        self.wake = true;
        ChangeOutcome::Done
    }

    pub(super) fn edit(&mut self, id: Id, payload: &'static str) -> ChangeOutcome {
        match self.tasks.get_mut(id) {
            Some(task) if task.is_sound() && task.set().is_some() => match task.stands {
                Stands::Active { .. } => ChangeOutcome::Active,
                Stands::Completed(_) => ChangeOutcome::Completed,
                _ => {
                    task.payload = payload;
                    ChangeOutcome::Done
                }
            },
            _ => ChangeOutcome::Missing,
        }
    }

    pub(super) fn end(&mut self, id: Id, wish: EndWish, is_cancel: bool) -> ChangeOutcome {
        let now = self.now_ms();
        let Some(task) = self.tasks.get_mut(id) else {
            return ChangeOutcome::Missing;
        };
        if task.set().is_none() || task.health == Health::Missing {
            return ChangeOutcome::Missing;
        }
        if task.has_ended() && (wish != EndWish::Delete || is_cancel) {
            return match task.stands {
                Stands::Completed(_) => ChangeOutcome::Completed,
                _ => ChangeOutcome::Already,
            };
        }
        if !task.is_sound() {
            if wish == EndWish::Delete {
                self.erase(id, "deleted");
            } else {
                self.set_aside_if_broken(id, &mut Vec::new());
            }
            return ChangeOutcome::Done;
        }
        let wish = match wish {
            EndWish::Decide => "decide",
            EndWish::Archive if is_cancel => "archive",
            EndWish::Archive => "operator",
            EndWish::Delete => "delete",
        };
        let wish = match task.cancel {
            Some(before) if strength(before) >= strength(wish) => before,
            _ => wish,
        };
        if let Some(lease) = task.lease() {
            let (server, number) = (lease.server, lease.number);
            task.cancel = Some(wish);
            let in_grace = self.meta.grace_until.is_some_and(|until| now < until);
            let alive = self.alive.contains(server);
            let message = (format!("control:{server}"), format!("{number} {id}"));
            if !alive && in_grace {
                // Who takes a server for dead asks again, to take over: it is told twice.
                self.published.push(message.clone());
            }
            self.published.push(message);
            self.count("cancels_requested", 1);
            if alive || in_grace {
                let server = server.to_owned();
                return ChangeOutcome::Requested { server };
            }
        }
        let is_superseded = self.tasks[id].superseded;
        match wish {
            "delete" => self.erase(id, "deleted"),
            _ if is_superseded => {
                self.erase(id, "superseded");
                return ChangeOutcome::Superseded;
            }
            "operator" => self.bury(id, "operator", false),
            _ => self.bury(id, "cancelled", true),
        }
        ChangeOutcome::Done
    }

    pub(super) fn look(&self, id: Id) -> Option<Looked> {
        let task = self.tasks.get(id)?;
        let (state, score) = task.set()?;
        let fields = match task.health {
            Health::Sound | Health::NoKind => task.fields(),
            Health::Missing | Health::NoHash => Default::default(),
        };
        Some(Looked {
            state: state.to_owned(),
            score,
            lease: task.lease().map_or(String::new(), |lease| lease.text()),
            fields: fields
                .into_iter()
                .map(|(field, value)| (field.to_owned(), value))
                .collect(),
        })
    }

    pub(super) fn wait(&mut self, id: Id, patience: u64) -> Answer {
        let now = self.now_ms();
        let standing = |task: &super::Task| task.set().map(|(state, _)| state);
        let state = self.tasks.get(id).and_then(standing);
        let (mut result, mut reason, mut error) = Default::default();
        let state = match state {
            None => "gone",
            Some("completed") => {
                result = self.tasks[id].result.unwrap_or_default().to_owned();
                "completed"
            }
            Some("archived") => {
                let task = &self.tasks[id];
                reason = task.reason.unwrap_or_default().to_owned();
                error = task.last_error.unwrap_or_default().to_owned();
                "archived"
            }
            Some(_) => {
                self.waiters.retain(|_, until| *until > now);
                let until = self.waiters.entry(id).or_default();
                *until = (now + patience).max(*until);
                "waiting"
            }
        };
        Answer::Watched {
            state: state.to_owned(),
            result,
            reason,
            error,
        }
    }
}

/// A weaker cancel does not undo a stronger one.
fn strength(wish: &str) -> u8 {
    match wish {
        "decide" => 1,
        "delete" => 3,
        _ => 2,
    }
}
