//! One call of the crate's own functions for each operation on leases.

use std::time::Duration;

use super::System;
use crate::answer::Answer;
use crate::broker::*;
use crate::model::Model;
use crate::op::{self, Op, Settler};
use crate::shapes::ERROR;

pub fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

impl System {
    /// A task under the lease of that holder; an empty one only a tick can answer.
    fn leased(&self, id: &str, holder: &str) -> LeasedId {
        match holder.split_once('@') {
            Some((number, server)) => LeasedId {
                id: id.into(),
                holder: LeaseHolder::parse(number, server),
            },
            None => self.found[id].clone(),
        }
    }

    /// Does one operation. `model` has done it already: it knows the time, and whom the operation's
    /// words name.
    pub async fn done(&mut self, op: &Op, model: &Model) -> Result<Answer, BrokerError> {
        self.set_clock(model);
        let (link, queue) = (&self.link, &self.queue);
        let mut named = model.named.iter();
        let mut leased = |held: &op::Held| {
            let holder = named.next().expect("the model names each holder");
            self.leased(held.id, holder)
        };
        let settlement = |task: LeasedId, how: How| Settlement { task, how };
        let (by, settlements) = match op {
            Op::Extend { lease, tasks } => {
                let tasks: Vec<_> = tasks.iter().map(leased).collect();
                let extended = extend(link, queue, ms(*lease), &tasks).await?;
                return Ok(Answer::Extended(extended));
            }
            Op::Progress { task, note } => {
                let noted = progress(link, queue, &leased(task), note).await?;
                return Ok(Answer::Noted(noted));
            }
            Op::Complete(tasks) => {
                let completion = |(held, result): &(op::Held, Option<&str>)| {
                    let task = leased(held);
                    let how = How::Complete {
                        has_end_effects: self.end_effects.contains(&key(&task)),
                        result: result.map(|result| result.as_bytes().to_vec()),
                    };
                    settlement(task, how)
                };
                (By::Holder, tasks.iter().map(completion).collect())
            }
            Op::Revoke(tasks) => {
                let revocation = |held: &op::Held| {
                    let task = leased(held);
                    let has_end_effects = self.end_effects.contains(&key(&task));
                    settlement(task, How::Revoke { has_end_effects })
                };
                (By::Holder, tasks.iter().map(revocation).collect())
            }
            Op::Retry { by, tasks } => {
                let retry = |retry: &op::Retry| {
                    let how = How::Retry {
                        delay: ms(retry.delay),
                        spends_retry: retry.spends,
                        lost: retry.lost,
                        undecodable: retry.undecodable,
                        error: ERROR.to_owned(),
                    };
                    settlement(leased(&retry.task), how)
                };
                (settler(*by), tasks.iter().map(retry).collect())
            }
            Op::Archive { by, tasks } => {
                let archive = |archive: &op::Archive| {
                    let how = How::Archive {
                        reason: archive.reason,
                        lost: archive.lost,
                        error: ERROR.to_owned(),
                    };
                    settlement(leased(&archive.task), how)
                };
                (settler(*by), tasks.iter().map(archive).collect())
            }
            Op::Defer(tasks) => {
                let defer = |defer: &op::Defer| {
                    let how = How::Defer {
                        delay: ms(defer.delay),
                        started: defer.started,
                    };
                    settlement(leased(&defer.task), how)
                };
                (By::Holder, tasks.iter().map(defer).collect())
            }
            Op::Release(tasks) => {
                let release = |release: &op::Release| {
                    let how = How::Release {
                        started: release.started,
                    };
                    settlement(leased(&release.task), how)
                };
                (By::Holder, tasks.iter().map(release).collect::<Vec<_>>())
            }
            op => return self.done_without_lease(op, model).await,
        };
        let settlements: Vec<_> = settlements.iter().collect();
        let settled = settle(link, queue, by, &settlements).await?;
        Ok(Answer::Settled(settled))
    }
}

fn settler(by: Settler) -> By {
    match by {
        Settler::Holder => By::Holder,
        Settler::Recoverer { skew } => By::Recoverer { skew: ms(skew) },
    }
}

pub fn key(task: &LeasedId) -> (String, String) {
    (task.id.to_string(), task.holder.as_str().to_owned())
}
