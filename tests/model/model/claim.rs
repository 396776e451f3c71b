use super::{Health, Holder, Lease, Model, Stands};
use crate::answer::{Answer, Claimed};
use crate::defaults;
use crate::op::{Mode, Server};

impl Model {
    pub(super) fn claim(&mut self, server: Server, room: usize, lease_ms: u64) -> Answer {
        let mut claimed = Claimed {
            number: 0,
            now: self.now_ms(),
            more: false,
            next_due: self.next_due_in(),
            malformed: Vec::new(),
            expired: Vec::new(),
            tasks: Vec::new(),
        };
        if self.meta.paused {
            return Answer::Claimed(claimed);
        }
        let mut pending = self.in_order(|task| match task.stands {
            Stands::Pending(place) => Some(place),
            _ => None,
        });
        let waiting = pending.len();
        pending.truncate(room);
        let (mut bytes, mut looked_at) = (0, 0);
        let number = (self.meta.lease + 1).max(self.now);
        for &(_, id) in &pending {
            let task = &self.tasks[id];
            let size = match task.health {
                Health::Sound | Health::NoKind => task.size() + task.fields_size(),
                Health::Missing | Health::NoHash => 0,
            };
            if size > 0 && looked_at > 0 && bytes + size > defaults::SCRIPT_BYTES {
                break;
            }
            bytes += size;
            if task.health != Health::Sound {
                self.set_aside_if_broken(id, &mut claimed.malformed);
            } else if task.wait_deadline().is_some_and(|time| time <= claimed.now) {
                self.bury(id, "deadline_passed", true);
                self.count("expired", 1);
                claimed.expired.push(self.expired(id));
            } else {
                // All go back to the place of the first one that the call looked at.
                let lease = Lease {
                    number,
                    server,
                    claimed_at: claimed.now,
                    place: pending[0].0,
                };
                let holder = Holder {
                    number,
                    server,
                    has_end_effects: task.has_end_effects(),
                };
                let (record, text) = (task.record(), lease.holder());
                claimed.tasks.push((id.to_owned(), text, record));
                if task.unique.as_ref().is_some_and(|u| u.0 == Mode::Started) {
                    self.free_lock(id);
                }
                self.remember(id, holder);
                self.tasks.get_mut(id).expect("it is pending").stands = Stands::Active {
                    expiry: claimed.now + lease_ms,
                    lease: Some(lease),
                };
            }
            looked_at += 1;
        }
        if !claimed.tasks.is_empty() {
            claimed.number = number;
            self.meta.lease = number;
        }
        claimed.more = waiting > looked_at;
        self.wake |= claimed.more;
        Answer::Claimed(claimed)
    }
}
