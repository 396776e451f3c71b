use super::{Model, Stands, Task};
use crate::op::{Clock, Event};
use crate::shapes::SKEW;

impl Model {
    pub(super) fn turn_clock(&mut self, clock: Clock) {
        let to = match clock {
            Clock::Forward(us) => self.now + us,
            Clock::Back(ms) => {
                self.now -= 1000 * ms;
                return;
            }
            Clock::To(event, ms) => match self.first(event) {
                // To the very µs, so that what is due from then on is just due.
                Some(time) => 1000 * time.saturating_add_signed(ms),
                None => return,
            },
        };
        if to > self.now {
            self.elapsed += to - self.now;
            self.now = to;
            let elapsed = self.elapsed;
            self.locks
                .retain(|_, lock| lock.expires.is_none_or(|time| time > elapsed));
        }
    }

    /// The first time of this sort that is not over, in ms.
    pub fn first(&self, event: Event) -> Option<u64> {
        let now = self.now_ms();
        let of_tasks = |time: fn(&Task) -> Option<u64>| {
            let times = self.tasks.values().filter_map(time);
            times.filter(|&time| time > now).min()
        };
        fn expiry(task: &Task) -> Option<u64> {
            match task.stands {
                Stands::Active { expiry, .. } => Some(expiry),
                _ => None,
            }
        }
        match event {
            Event::Due => of_tasks(Task::due),
            Event::Deadline => of_tasks(Task::deadline_entry),
            Event::Expiry => of_tasks(expiry),
            Event::Lost => of_tasks(|task| Some(expiry(task)? + SKEW)),
            Event::GraceEnd => self.meta.grace_until.filter(|&time| time > now),
            Event::RetentionEnd => of_tasks(|task| match task.stands {
                Stands::Completed(until) => Some(until),
                _ => None,
            }),
            Event::Hook => of_tasks(|task| task.hook),
            Event::Lapse => {
                let until = self.meta.hooked.values().flatten().copied();
                until.filter(|&time| time > now).min()
            }
            Event::LockEnd => {
                let first = self.locks.values().filter_map(|lock| lock.expires).min()?;
                Some(now + (first - self.elapsed).div_ceil(1000))
            }
        }
    }
}
