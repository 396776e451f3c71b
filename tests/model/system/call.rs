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
        let settled = match op {
            Op::Extend { lease, tasks } => {
                let tasks: Vec<_> = tasks.iter().map(leased).collect();
                extend(link, queue, ms(*lease), &tasks).await?
            }
            Op::Progress { task, note } => {
                vec![progress(link, queue, &leased(task), note).await?]
            }
            Op::Complete(tasks) => {
                let completion = |(held, result): &(op::Held, Option<&str>)| {
                    let task = leased(held);
                    Completion {
                        has_end_effects: self.end_effects.contains(&key(&task)),
                        task,
                        result: result.map(|result| result.as_bytes().to_vec()),
                    }
                };
                let tasks: Vec<_> = tasks.iter().map(completion).collect();
                complete(link, queue, &tasks).await?
            }
            Op::Retry { by, tasks } => {
                let retrial = |retry: &op::Retry| Retrial {
                    task: leased(&retry.task),
                    delay: ms(retry.delay),
                    spends_retry: retry.spends,
                    lost: retry.lost,
                    error: ERROR.to_owned(),
                };
                let tasks: Vec<_> = tasks.iter().map(retrial).collect();
                retry(link, queue, settler(*by), &tasks).await?
            }
            Op::Archive { by, tasks } => {
                let archival = |archive: &op::Archive| Archival {
                    task: leased(&archive.task),
                    reason: archive.reason,
                    lost: archive.lost,
                    error: ERROR.to_owned(),
                };
                let tasks: Vec<_> = tasks.iter().map(archival).collect();
                archive(link, queue, settler(*by), &tasks).await?
            }
            Op::Defer(tasks) => {
                let deferral = |defer: &op::Defer| Deferral {
                    task: leased(&defer.task),
                    delay: ms(defer.delay),
                    started: defer.started,
                };
                let tasks: Vec<_> = tasks.iter().map(deferral).collect();
                defer(link, queue, &tasks).await?
            }
            Op::Release(tasks) => {
                let releasal = |release: &op::Release| Releasal {
                    task: leased(&release.task),
                    started: release.started,
                };
                let tasks: Vec<_> = tasks.iter().map(releasal).collect();
                release(link, queue, &tasks).await?
            }
            op => return self.done_without_lease(op, model).await,
        };
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
