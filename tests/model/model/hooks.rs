//! Dead-letter hooks: owed until a server that holds them has run them.

use super::{Health, Model, Stands};
use crate::answer::{Answer, Hooks, TakenHook};
use crate::broker::HookEnd;
use crate::defaults;
use crate::op::{HookDone, TakeHooks};

/// How many owed hooks a call looks at. Those that it cannot run it puts off, by this many ms, only
/// where they are more than half of a full look.
const LOOK: usize = 50;
const PUT_OFF: u64 = 1000;

impl Model {
    pub(super) fn take_hooks(&mut self, take: &TakeHooks) -> Answer {
        let now = self.now_ms();
        let mut owed = self.in_order(|task| {
            let not_before = task.hook.filter(|&time| time <= now)?;
            Some(not_before as i64)
        });
        owed.truncate(LOOK);
        let owed_len = owed.len();
        let mut more = owed.len() == LOOK;
        let mut unknown = Vec::new();
        let (mut taken, mut dropped, mut bytes) = (Vec::new(), 0, 0);
        for (_, id) in owed {
            let task = self.tasks.get_mut(id).expect("its hook is owed");
            let Stands::Archived(died) = task.stands else {
                panic!("{id} is not archived and owes a hook");
            };
            if died + (defaults::HOOK_TRIES.as_millis() as u64) < now
                || task.health != Health::Sound
            {
                task.hook = None;
                dropped += 1;
            } else if !take.kinds.contains(&task.kind) {
                unknown.push(id);
            } else if taken.len() < take.room && bytes < defaults::SCRIPT_BYTES {
                bytes += task.size();
                task.hook = Some(now + take.hold);
                self.holds.entry(id).or_default().push(now + take.hold);
                taken.push(TakenHook {
                    id: id.to_owned(),
                    not_before: (now + take.hold).to_string(),
                    died_at: died,
                    reason: task.reason.unwrap_or_default().to_owned(),
                    error: task.last_error.unwrap_or_default().to_owned(),
                    record: task.record(),
                });
            } else {
                more = true;
            }
        }
        if owed_len == LOOK && unknown.len() > LOOK / 2 {
            for id in unknown {
                let task = self.tasks.get_mut(id).expect("its hook is owed");
                task.hook = Some(now + PUT_OFF);
            }
        }
        self.count("hooks_dropped", dropped);
        Answer::Hooks(Hooks {
            dropped,
            more,
            taken,
        })
    }

    pub(super) fn end_hooks(&mut self, ends: &[HookDone]) -> Answer {
        let now = self.now_ms();
        let mut run = 0;
        for end in ends {
            let not_before = self.hold(end);
            self.named.push(not_before.to_string());
            let Some(task) = self.tasks.get_mut(end.id) else {
                continue;
            };
            if task.hook == Some(not_before) {
                task.hook = match end.end {
                    HookEnd::Done => None,
                    HookEnd::Back => Some(now),
                    HookEnd::Again(delay) => Some(now + delay.as_millis() as u64),
                };
                run += usize::from(end.end == HookEnd::Done);
            }
        }
        self.count("hooks_run", run);
        Answer::Nothing
    }

    fn hold(&self, end: &HookDone) -> u64 {
        let holds = self.holds.get(end.id).map_or(&[][..], Vec::as_slice);
        let mut holds = holds.iter().rev().skip(usize::from(end.late));
        holds.next().copied().unwrap_or(0)
    }
}
