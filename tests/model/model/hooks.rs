//! Dead-letter hooks: owed until a server that holds them has run them.

use std::collections::BTreeSet;

use super::{Health, Model, Stands};
use crate::answer::{Answer, Hooks, TakenHook};
use crate::broker::{DroppedHook, HookEnd};
use crate::defaults;
use crate::op::{HookDone, TakeHooks};

/// How many owed hooks a call looks at. Those that it cannot run it puts off, by this many ms, only
/// where they are more than half of a full look.
const LOOK: usize = 50;
const PUT_OFF: u64 = 1000;

impl Model {
    pub(super) fn register_hooks(&mut self, kinds: &[&'static str], lasts: u64) {
        let until = Some(self.now_ms() + lasts);
        let kinds = kinds.iter().map(|&kind| (kind, until));
        self.meta.hooked.extend(kinds);
    }

    pub(super) fn lapse_hooks(&mut self, lasts: u64) -> Answer {
        let (now, meta) = (self.now_ms(), &mut self.meta);
        let pulse = meta.pulse.unwrap_or(0);
        let in_grace = meta.grace_until.is_some_and(|until| now < until);
        let mut lapsed = Vec::new();
        meta.hooked.retain(|kind, until| {
            let has_lapsed = until.is_some_and(|until| until < pulse && !in_grace);
            if has_lapsed {
                lapsed.push((*kind).to_owned());
            }
            until.get_or_insert(now + lasts);
            !has_lapsed
        });
        Answer::Lapsed(lapsed)
    }

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
        let (mut taken, mut dropped, mut bytes) = (Vec::new(), Vec::new(), 0);
        for (_, id) in owed {
            let task = self.tasks.get_mut(id).expect("its hook is owed");
            let Stands::Archived(died) = task.stands else {
                panic!("{id} is not archived and owes a hook");
            };
            if task.health != Health::Sound {
                task.hook = None;
                dropped.push(DroppedHook {
                    id: id.to_owned(),
                    kind: String::new(),
                });
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
                    failed: task.hook_failed,
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
        self.count("hooks_dropped", dropped.len());
        Answer::Hooks(Hooks {
            dropped,
            more,
            taken,
        })
    }

    pub(super) fn end_hooks(&mut self, ends: &[HookDone]) -> Answer {
        let now = self.now_ms();
        let (mut run, mut dropped, mut seen) = (0, 0, BTreeSet::new());
        for end in ends {
            let not_before = self.hold(end);
            self.named.push(not_before.to_string());
            let Some(task) = self.tasks.get_mut(end.id) else {
                continue;
            };
            if task.hook == Some(not_before) && seen.insert(end.id) {
                task.hook = match end.end {
                    HookEnd::Done | HookEnd::Dropped => None,
                    HookEnd::Back => Some(now),
                    HookEnd::Again(delay) => {
                        task.hook_failed += 1;
                        Some(now + delay.as_millis() as u64)
                    }
                };
                run += usize::from(end.end == HookEnd::Done);
                dropped += usize::from(end.end == HookEnd::Dropped);
            }
        }
        self.count("hooks_run", run);
        self.count("hooks_dropped", dropped);
        Answer::Nothing
    }

    fn hold(&self, end: &HookDone) -> u64 {
        let holds = self.holds.get(end.id).map_or(&[][..], Vec::as_slice);
        let mut holds = holds.iter().rev().skip(usize::from(end.late));
        holds.next().copied().unwrap_or(0)
    }
}
