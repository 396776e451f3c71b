use super::{Health, Model, Stands};
use crate::answer::Answer;
use crate::op::{Damage, Id, Op};

impl Model {
    /// Does one operation, and notes what it answers and publishes.
    pub fn step(&mut self, op: &Op) {
        self.published.clear();
        self.named.clear();
        self.answer = self.done(op);
    }

    fn done(&mut self, op: &Op) -> Answer {
        match op {
            Op::Enqueue(tasks) => return self.enqueue(tasks),
            Op::Claim {
                server,
                room,
                lease,
            } => return self.claim(server, *room, *lease),
            Op::Extend { lease, tasks } => return self.extend(*lease, tasks),
            Op::Progress { task, note } => return self.progress(*task, note),
            Op::Complete(tasks) => return self.complete(tasks),
            Op::Revoke(tasks) => return self.revoke(tasks),
            Op::Retry { by, tasks } => return self.retry(*by, tasks),
            Op::Archive { by, tasks } => return self.archive(*by, tasks),
            Op::Defer(tasks) => return self.defer(tasks),
            Op::Release(tasks) => return self.release(tasks),
            Op::Promote => return self.promote(),
            Op::Expire => return self.expire(),
            Op::Tick(tick) => return self.tick(*tick),
            Op::Adopt(ids) => return self.adopt(ids),
            Op::Sweep(sweep) => return self.sweep(*sweep),
            Op::TakeHooks(take) => return self.take_hooks(take),
            Op::EndHooks(ends) => return self.end_hooks(ends),
            Op::Wait { id, patience } => return self.wait(id, *patience),
            Op::Run(id) => return Answer::ChangeOutcome(self.run(id)),
            Op::Edit { id, payload } => return Answer::ChangeOutcome(self.edit(id, payload)),
            Op::End {
                id,
                wish,
                is_cancel,
            } => return Answer::ChangeOutcome(self.end(id, *wish, *is_cancel)),
            Op::Look(id) => return Answer::Looked(self.look(id)),
            Op::RegisterHooks { kinds, lasts } => self.register_hooks(kinds, *lasts),
            Op::LapseHooks(lasts) => return self.lapse_hooks(*lasts),
            Op::RegisterOldHook(kind) => {
                self.meta.hooked.insert(kind, None);
            }
            Op::Pause => self.meta.paused = true,
            Op::Resume => self.meta.paused = false,
            Op::TakeToken => self.wake = false,
            Op::Publish(server) => {
                self.alive.insert(server);
                self.announce(server, Some(super::SERVER_LIVES));
            }
            Op::Retire(server) => {
                self.alive.remove(server);
                self.announce(server, None);
            }
            Op::Clock(clock) => self.turn_clock(*clock),
            Op::Spoil(id, damage) => self.spoil(id, *damage),
        }
        Answer::Nothing
    }

    fn announce(&mut self, server: &'static str, lives: Option<u64>) {
        let now = self.now_ms();
        self.servers.retain(|_, until| *until > now);
        match lives {
            Some(lives) => self.servers.insert(server, now + lives),
            None => self.servers.remove(server),
        };
        let last = self.servers.values().max();
        self.index_lives = last.map_or(0, |until| until - now);
    }

    fn spoil(&mut self, id: Id, damage: Damage) {
        let Some(task) = self.tasks.get_mut(id).filter(|task| task.can_be_spoilt()) else {
            return;
        };
        self.named.push(id.to_owned());
        match damage {
            Damage::Unlisted => {
                task.stands = Stands::Nowhere {
                    lease: task.lease().cloned(),
                    deadline: task.deadline_entry(),
                }
            }
            Damage::NoRecord => task.health = Health::Missing,
            Damage::NoKind => task.health = Health::NoKind,
            Damage::NoHash => task.health = Health::NoHash,
        }
    }
}
