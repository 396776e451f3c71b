//! What the forwarder does with tasks that wait.

use super::{Model, Stands};
use crate::answer::{Answer, Promoted};
use crate::op::Id;

impl Model {
    pub(super) fn promote(&mut self) -> Answer {
        let now = self.now_ms();
        let scheduled = self.in_order(|task| match task.stands {
            Stands::Scheduled(due) if due <= now => Some(due as i64),
            _ => None,
        });
        let retry = self.in_order(|task| match task.stands {
            Stands::Retry(due) if due <= now => Some(due as i64),
            _ => None,
        });
        let (mut moved, mut malformed) = (0, Vec::new());
        for (_, id) in scheduled.into_iter().chain(retry) {
            if !self.set_aside_if_broken(id, &mut malformed) {
                moved += 1;
                let place = self.place(moved, self.tasks[id].priority);
                self.stand(id, Stands::Pending(place));
                self.wake = true;
            }
        }
        let passed = |time: Option<u64>| time.is_some_and(|time| time <= now);
        Answer::Promoted(Promoted {
            moved,
            more: self.tasks.values().any(|task| passed(task.due())),
            deadlines_passed: self
                .tasks
                .values()
                .any(|task| passed(task.deadline_entry())),
            next_due: self.next_due_in(),
            malformed,
        })
    }

    pub(super) fn expire(&mut self) -> Answer {
        let now = self.now_ms();
        let passed = self.in_order(|task| {
            let deadline = task.deadline_entry().filter(|&time| time <= now)?;
            Some(deadline as i64)
        });
        let (mut archived, mut malformed) = (Vec::new(), Vec::new());
        for (_, id) in passed {
            let task = self.tasks.get_mut(id).expect("it has a deadline");
            if let Stands::Nowhere { deadline, .. } = &mut task.stands {
                *deadline = None;
                self.tell(id);
                self.count("missing", 1);
            } else if !self.set_aside_if_broken(id, &mut malformed) {
                self.bury(id, "deadline_passed", true);
                self.count("expired", 1);
                archived.push(self.expired(id));
            }
        }
        Answer::Expired {
            archived,
            malformed,
        }
    }

    pub(super) fn stand(&mut self, id: Id, stands: Stands) {
        self.tasks.get_mut(id).expect("it exists").stands = stands;
    }
}
