//! What ends a lease, extends it, or needs it.

use std::collections::BTreeSet;

use super::{Health, Lease, Model, Stands};
use crate::answer::Answer;
use crate::broker::{ArchiveReason, Became, Extended, Settled};

/// May settle.
const MAY: Settled = Settled::Done(Became::Completed);
use crate::op::{Archive, Defer, Held, Id, Release, Retry, Settler};
use crate::shapes::ERROR;

/// A task whose lease ends now, at its place in the operation.
struct Ended {
    at: usize,
    id: Id,
    lease: Option<Lease>,
}

/// What a handler that was called did.
#[derive(PartialEq, Eq)]
enum Try {
    Failed,
    /// It put its task off, or was interrupted.
    Called,
}

impl Model {
    pub(super) fn extend(&mut self, lease_ms: u64, tasks: &[Held]) -> Answer {
        let expires = self.now_ms() + lease_ms;
        let mut stale = 0;
        let answer = |held: &Held| {
            let (holder, _) = self.name(*held);
            match self.ask(held.id, &holder) {
                Settled::Gone => Extended::Lost,
                Settled::Stale => {
                    stale += 1;
                    Extended::Lost
                }
                Settled::Done(_) => {
                    let task = self.tasks.get_mut(held.id).expect("it has a lease");
                    if let Stands::Active { expiry, .. } = &mut task.stands {
                        *expiry = expires;
                    }
                    let readable = matches!(task.health, Health::Sound | Health::NoKind);
                    match readable && task.cancel.is_some() {
                        true => Extended::Cancelled,
                        false => Extended::Done,
                    }
                }
            }
        };
        let answers = tasks.iter().map(answer).collect();
        self.count("stale", stale);
        Answer::Extended(answers)
    }

    pub(super) fn progress(&mut self, held: Held, note: &'static str) -> Answer {
        let (holder, _) = self.name(held);
        match (self.ask(held.id, &holder), self.tasks.get_mut(held.id)) {
            (Settled::Done(_), Some(task)) if task.is_sound() => {
                task.progress = Some(note);
                return Answer::Noted(true);
            }
            (Settled::Stale, _) => self.count("stale", 1),
            _ => {}
        }
        Answer::Noted(false)
    }

    pub(super) fn complete(&mut self, tasks: &[(Held, Option<&'static str>)]) -> Answer {
        self.end_well(tasks, true)
    }

    pub(super) fn revoke(&mut self, tasks: &[Held]) -> Answer {
        let tasks: Vec<_> = tasks.iter().map(|&held| (held, None)).collect();
        self.end_well(&tasks, false)
    }

    fn end_well(&mut self, tasks: &[(Held, Option<&'static str>)], keeps: bool) -> Answer {
        let mut answers = Vec::new();
        let (mut done, mut stale) = (BTreeSet::new(), 0);
        for &(held, result) in tasks {
            let (holder, reads) = self.name(held);
            let answer = match self.ask(held.id, &holder) {
                _ if done.contains(held.id) => Settled::Gone,
                answer => answer,
            };
            stale += usize::from(answer == Settled::Stale);
            if answer == MAY {
                done.insert(held.id);
                self.finish(held.id, result, reads, keeps);
            }
            answers.push(answer);
        }
        self.count("processed", done.len());
        self.count("stale", stale);
        Answer::Settled(answers)
    }

    fn finish(&mut self, id: Id, result: Option<&'static str>, reads: bool, keeps: bool) {
        let now = self.now_ms();
        let task = self.tasks.get_mut(id).expect("it has a lease");
        // A record that is not read is removed as it is.
        if !task.is_sound() {
            if !reads {
                let missing = task.health == Health::Missing;
                self.tasks.remove(id);
                self.count("missing", usize::from(missing));
            } else {
                self.set_aside_if_broken(id, &mut Vec::new());
            }
            self.tell(id);
            return;
        }
        let claimed_at = task.lease().map(|lease| lease.claimed_at);
        if keeps && task.retention > 0 {
            task.started_at = task.started_at.or(claimed_at);
            task.stands = Stands::Completed(now + task.retention);
            task.completed_at = Some(now);
            task.result = result.or(task.result);
            (task.cancel, task.lost, task.undecodable) = (None, None, None);
            (task.last_error, task.last_failed_at) = (None, None);
            self.free_lock(id);
        } else {
            self.free_lock(id);
            self.tasks.remove(id);
        }
        self.tell(id);
    }

    pub(super) fn retry(&mut self, by: Settler, tasks: &[Retry]) -> Answer {
        let held: Vec<_> = tasks.iter().map(|retry| retry.task).collect();
        let (mut answers, ended) = self.end_leases(by, &held, |_| Became::Retried);
        for (i, ended) in self
            .without_cancelled(&mut answers, ended, |_| Some(Try::Failed))
            .into_iter()
            .enumerate()
        {
            let Retry {
                delay,
                spends,
                lost,
                undecodable,
                ..
            } = tasks[ended.at];
            self.write_try(ended.id, &ended.lease, lost);
            self.tasks.get_mut(ended.id).expect("it ended").undecodable = undecodable;
            self.write_failure(ended.id);
            self.count("failed", usize::from(spends));
            self.count("processed", usize::from(spends));
            let due = match delay {
                0 => self.now_ms(),
                _ => self.after(delay),
            };
            let place = self.place(i + 1, self.tasks[ended.id].priority);
            let task = self.tasks.get_mut(ended.id).expect("it ended");
            task.retried += u32::from(spends);
            if task.wait_deadline().is_some_and(|deadline| due >= deadline) {
                let reason = ArchiveReason::DeadlinePassed;
                answers[ended.at] = Settled::Done(Became::Archived(reason));
                self.bury(ended.id, reason.as_str(), true);
                self.count("expired", 1);
                continue;
            }
            task.stands = if delay > 0 {
                Stands::Retry(due)
            } else {
                // A lost task has had its turn.
                let old = ended.lease.filter(|_| lost.is_some());
                Stands::Pending(old.map_or(place, |lease| lease.place))
            };
            self.retake_lock(ended.id, due);
            self.wake |= delay == 0;
            self.count("retried", 1);
        }
        Answer::Settled(answers)
    }

    pub(super) fn archive(&mut self, by: Settler, tasks: &[Archive]) -> Answer {
        let held: Vec<_> = tasks.iter().map(|archive| archive.task).collect();
        let wanted = |at: usize| Became::Archived(tasks[at].reason);
        let (mut answers, ended) = self.end_leases(by, &held, wanted);
        // A cancel goes before what no handler has said.
        let unsaid = |ended: &Ended| {
            matches!(
                tasks[ended.at].reason,
                ArchiveReason::RetriesExhausted | ArchiveReason::LeaseExpired
            )
        };
        let (unsaid, mut said): (Vec<_>, Vec<_>) = ended.into_iter().partition(unsaid);
        said.extend(self.without_cancelled(&mut answers, unsaid, |_| Some(Try::Failed)));
        for ended in said {
            let Archive { reason, lost, .. } = tasks[ended.at];
            self.write_try(ended.id, &ended.lease, lost);
            self.write_failure(ended.id);
            self.bury(ended.id, reason.as_str(), true);
            self.count("processed", 1);
            self.count("failed", 1);
        }
        Answer::Settled(answers)
    }

    pub(super) fn defer(&mut self, tasks: &[Defer]) -> Answer {
        let held: Vec<_> = tasks.iter().map(|defer| defer.task).collect();
        let (mut answers, ended) = self.end_leases(Settler::Holder, &held, |_| Became::Deferred);
        let called = |at: usize| tasks[at].started.then_some(Try::Called);
        for ended in self.without_cancelled(&mut answers, ended, called) {
            let Defer { delay, started, .. } = tasks[ended.at];
            if started {
                self.write_try(ended.id, &ended.lease, None);
            }
            let due = self.after(delay);
            let task = self.tasks.get_mut(ended.id).expect("it ended");
            task.cancel = None;
            task.stands = Stands::Scheduled(due);
            self.retake_lock(ended.id, due);
            self.count("deferred", 1);
        }
        Answer::Settled(answers)
    }

    pub(super) fn release(&mut self, tasks: &[Release]) -> Answer {
        let held: Vec<_> = tasks.iter().map(|release| release.task).collect();
        let (mut answers, ended) = self.end_leases(Settler::Holder, &held, |_| Became::Released);
        let called = |at: usize| tasks[at].started.then_some(Try::Called);
        for ended in self.without_cancelled(&mut answers, ended, called) {
            let lease = ended.lease.clone().expect("a holder has a lease");
            if tasks[ended.at].started {
                let lost = self.tasks[ended.id].lost;
                self.write_try(ended.id, &ended.lease, lost);
            }
            let task = self.tasks.get_mut(ended.id).expect("it ended");
            task.cancel = None;
            task.stands = Stands::Pending(lease.place);
            self.retake_lock(ended.id, self.now_ms());
            self.wake = true;
            self.count("released", 1);
        }
        Answer::Settled(answers)
    }

    /// Whether this holder has the task's lease.
    fn ask(&self, id: Id, holder: &str) -> Settled {
        match self.tasks.get(id).and_then(|task| task.lease()) {
            None => Settled::Gone,
            Some(lease) if lease.holder() == holder => MAY,
            Some(_) => Settled::Stale,
        }
    }

    /// Whether this recoverer may take the task from that holder.
    fn ask_to_recover(&self, id: Id, holder: &str, skew: u64) -> Settled {
        let Some(task) = self.tasks.get(id) else {
            return Settled::Gone;
        };
        let (is_active, expiry) = match task.stands {
            Stands::Active { expiry, .. } => (true, expiry),
            _ => (false, 0),
        };
        let is_meant = match task.lease() {
            Some(lease) => lease.holder() == holder,
            None if is_active && holder.is_empty() => true,
            None => return Settled::Gone,
        };
        let in_grace = self
            .meta
            .grace_until
            .is_some_and(|until| self.now_ms() < until);
        if is_meant && !in_grace && expiry + skew <= self.now_ms() {
            MAY
        } else {
            Settled::Stale
        }
    }

    /// Ends the leases of those who may.
    fn end_leases(
        &mut self,
        by: Settler,
        tasks: &[Held],
        wanted: impl Fn(usize) -> Became,
    ) -> (Vec<Settled>, Vec<Ended>) {
        let (mut answers, mut ended) = (Vec::new(), Vec::new());
        let (mut stale, mut recovered) = (0, 0);
        let mut seen = BTreeSet::new();
        for (at, held) in tasks.iter().enumerate() {
            let id = held.id;
            let (holder, _) = self.name(*held);
            let mut answer = match Self::skew(by) {
                _ if seen.contains(id) => Settled::Gone,
                Some(skew) => self.ask_to_recover(id, &holder, skew),
                None => self.ask(id, &holder),
            };
            if answer == MAY {
                seen.insert(id);
                let lease = self.tasks[id].lease().cloned();
                if self.set_aside_if_broken(id, &mut Vec::new()) {
                    answer = Settled::Gone;
                } else {
                    recovered += usize::from(Self::skew(by).is_some());
                    if self.tasks[id].superseded {
                        answer = Settled::Done(Became::Superseded);
                        self.erase(id, "superseded");
                    } else {
                        answer = Settled::Done(wanted(at));
                        ended.push(Ended { at, id, lease });
                    }
                }
            }
            stale += usize::from(answer == Settled::Stale && Self::skew(by).is_none());
            answers.push(answer);
        }
        self.count("stale", stale);
        self.count("recovered", recovered);
        (answers, ended)
    }

    /// Does to cancelled tasks what was asked, where their handler does not decide. `try_of` says of
    /// the task at that place in the operation what its handler did, if it was called.
    fn without_cancelled(
        &mut self,
        answers: &mut [Settled],
        ended: Vec<Ended>,
        try_of: impl Fn(usize) -> Option<Try>,
    ) -> Vec<Ended> {
        let mut rest = Vec::new();
        for ended in ended {
            let (reason, owes_hook) = match self.tasks[ended.id].cancel {
                Some("archive") => (ArchiveReason::Cancelled, true),
                Some("operator") => (ArchiveReason::Operator, false),
                Some("delete") => {
                    answers[ended.at] = Settled::Done(Became::Deleted);
                    self.erase(ended.id, "deleted");
                    continue;
                }
                _ => {
                    rest.push(ended);
                    continue;
                }
            };
            let tried = try_of(ended.at);
            if tried.is_some() {
                self.write_try(ended.id, &ended.lease, None);
            }
            if tried == Some(Try::Failed) {
                self.write_failure(ended.id);
            }
            answers[ended.at] = Settled::Done(Became::Archived(reason));
            self.bury(ended.id, reason.as_str(), owes_hook);
        }
        rest
    }

    /// What a try leaves in the record.
    fn write_try(&mut self, id: Id, lease: &Option<Lease>, lost: Option<u32>) {
        let task = self.tasks.get_mut(id).expect("it ended");
        let claimed_at = lease.as_ref().map(|lease| lease.claimed_at);
        task.started_at = task.started_at.or(claimed_at);
        task.lost = lost;
        task.undecodable = None;
        task.cancel = None;
    }

    fn write_failure(&mut self, id: Id) {
        let now = self.now_ms();
        let task = self.tasks.get_mut(id).expect("it ended");
        task.last_error = Some(ERROR);
        task.last_failed_at = Some(now);
    }
}
