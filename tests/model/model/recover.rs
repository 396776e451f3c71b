//! What the recoverer finds, and the janitor finds for it.

use super::{Model, Stands, Task};
use crate::answer::{Answer, Lost, Ticked};
use crate::defaults;
use crate::op::{Id, Tick};

impl Model {
    pub(super) fn tick(&mut self, tick: Tick) -> Answer {
        let now = self.now_ms();
        let outage = match self.meta.pulse {
            Some(pulse) => now.saturating_sub(pulse) > tick.harmless + tick.vouched || pulse > now,
            // The first tick of all, and a lease runs out before a heartbeat must have come: who knows why.
            None => {
                let ran_out = |task: &Task| matches!(task.stands, Stands::Active { expiry, .. } if expiry <= now + tick.grace);
                self.tasks.values().any(ran_out)
            }
        };
        if outage {
            self.meta.grace_until = Some(now + tick.grace);
        }
        self.meta.pulse = Some(now);
        let grace_left = self.meta.grace_until.unwrap_or(0).saturating_sub(now);
        let mut ticked = Ticked {
            grace_left,
            hook_owed: self
                .tasks
                .values()
                .any(|task| task.hook.is_some_and(|time| time <= now)),
            malformed: Vec::new(),
            lost: Vec::new(),
        };
        self.found.clear();
        if grace_left > 0 {
            return Answer::Ticked(ticked);
        }
        let expired = self.in_order(|task| match task.stands {
            Stands::Active { expiry, .. } if expiry + tick.skew <= now => Some(expiry as i64),
            _ => None,
        });
        for (_, id) in expired {
            if self.set_aside_if_broken(id, &mut ticked.malformed) {
                continue;
            }
            let task = &self.tasks[id];
            let holder = task.lease().map_or(String::new(), |lease| lease.holder());
            self.found.push((id, holder.clone()));
            ticked.lost.push(Lost {
                id: id.to_owned(),
                holder,
                kind: task.kind.to_owned(),
                retried: task.retried,
                max_retry: task.max_retry.unwrap_or(defaults::MAX_RETRY),
                lost_before: task.lost.unwrap_or(0),
                has_policy: task.has_policy,
            });
        }
        Answer::Ticked(ticked)
    }

    pub(super) fn adopt(&mut self, ids: &[Id]) -> Answer {
        let expiry = self.now_ms() + defaults::LEASE.as_millis() as u64;
        let mut adopted = 0;
        for id in ids {
            if let Some(task) = self.tasks.get_mut(id)
                && let Stands::Nowhere { lease, .. } = &mut task.stands
            {
                let lease = lease.take();
                // A holder may live, and gets the time to extend its lease.
                task.stands = Stands::Active {
                    expiry: if lease.is_some() { expiry } else { 0 },
                    lease,
                };
                adopted += 1;
            }
        }
        self.count("adopted", adopted);
        Answer::Adopted(adopted)
    }
}
