use super::{Model, Stands, Task};
use crate::answer::{Answer, Swept};
use crate::broker::DroppedHook;
use crate::op::{Id, Sweep};

impl Model {
    pub(super) fn sweep(&mut self, sweep: Sweep) -> Answer {
        let now = self.now_ms();
        let is_over = |task: &Task| matches!(task.stands, Stands::Completed(until) if until <= now);
        let goes = |task: &Task| match task.stands {
            Stands::Completed(_) => sweep.sheds || is_over(task),
            _ => false,
        };
        let done = self.tasks.iter().filter(|(_, task)| goes(task));
        let done: Vec<Id> = done.map(|(&id, _)| id).collect();
        let early = done.iter().filter(|id| !is_over(&self.tasks[*id]));
        let mut shed = early.count();
        let archive = self.in_order(|task| match task.stands {
            Stands::Archived(died) => Some(died as i64),
            _ => None,
        });
        // Those too many are the oldest, as are those too old.
        let too_many = archive.len().saturating_sub(sweep.cap);
        let too_old = |died: i64| died <= now as i64 - sweep.age as i64;
        let is_over = |rank: usize, died: i64| rank < too_many || too_old(died);
        let keep = sweep.keep_for_hooks as i64;
        let (mut spared, mut dropped, mut removed) = (0, Vec::new(), 0);
        for (rank, &(died, id)) in archive.iter().enumerate().skip(sweep.pass_over) {
            let is_over = is_over(rank, died);
            if !is_over && !sweep.sheds {
                break;
            }
            let task = &self.tasks[id];
            let is_owed = task.hook.is_some();
            let has_server = self.meta.hooked.contains_key(task.kind);
            if is_owed && has_server && died > now as i64 - keep {
                spared += 1;
            } else {
                dropped.extend(is_owed.then(|| DroppedHook {
                    id: id.to_owned(),
                    kind: task.kind.to_owned(),
                }));
                removed += 1;
                shed += usize::from(!is_over);
                self.tasks.remove(id);
            }
        }
        for id in &done {
            self.tasks.remove(id);
        }
        self.count("swept_completed", done.len());
        self.count("swept_archived", removed);
        self.count("shed", shed);
        self.count("hooks_dropped", dropped.len());
        let looked_at = spared + removed;
        Answer::Swept(Swept {
            completed: done.len(),
            archived: removed,
            hooks_dropped: dropped,
            spared,
            more: looked_at > 0 && looked_at + sweep.pass_over >= archive.len(),
            shed,
        })
    }
}
