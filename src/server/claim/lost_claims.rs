use std::collections::{HashMap, HashSet};

use futures::stream::{self, StreamExt};
use parking_lot::Mutex;

use crate::broker::{
    BrokerError, By, Claim, Fault, How, LeaseScan, LeasedId, Queue, Settled, Settlement, batches,
    queues_with, settle,
};
use crate::server::observe::log_limit::log_limited;
use crate::server::shared::Shared;
use crate::server::shared::connections::Connections;
use crate::server::shared::each_queue::QUEUES_AT_ONCE;

/// So often a task that was claimed alone is handed back because the reply was lost. Then it is too large
/// for the connection, and its lease is left to run out, so that it holds up nothing behind it.
const HAND_BACKS: u8 = 3;
/// How many such tasks it remembers.
const REMEMBERED: usize = 1_000;

/// Hands back the tasks of claims whose replies were lost. There is at most one such claim of a queue,
/// and its number is higher than those of all claims whose replies came. So this never touches what
/// runs, nor what Redis refused to settle, which is left until its lease ends.
#[derive(Default)]
pub(crate) struct LostClaims(Mutex<State>);

#[derive(Default)]
struct State {
    /// The number of the last claim that brought something, by queue.
    answered: HashMap<Queue, u64>,
    /// The queues to whose claims a reply was lost.
    doubted: HashSet<Queue>,
    /// No claim has brought anything since the last reply that was lost.
    careful: bool,
    /// How often the claim of this task alone had no reply.
    lost_alone: HashMap<Task, u8>,
}

/// A task by its queue and id.
type Task = (Queue, String);

impl State {
    fn is_given_up(&self, task: &Task) -> bool {
        self.lost_alone.get(task).is_some_and(|n| *n >= HAND_BACKS)
    }

    fn lost_alone(&mut self, task: Task) {
        if self.lost_alone.len() >= REMEMBERED {
            self.lost_alone.clear();
        }
        *self.lost_alone.entry(task).or_default() += 1;
    }
}

impl LostClaims {
    /// Notes a claim that brought something. A queue that is no longer served is forgotten with its last
    /// attempt.
    pub(crate) fn answered(&self, shared: &Shared, queue: &Queue, claim: &Claim) {
        let mut state = self.0.lock();
        state.careful = false;
        let number = claim.number;
        if !state.lost_alone.is_empty() {
            let arrived = |(of, id): &Task| {
                of == queue && claim.tasks.iter().any(|task| *task.leased.id == **id)
            };
            state.lost_alone.retain(|task, _| !arrived(task));
        }
        if let Some(last) = state.answered.get_mut(queue) {
            *last = number;
            return;
        }
        let served = shared.queues.now();
        state.answered.retain(|known, _| {
            served.iter().any(|served| served.queue == *known) || shared.running.has(known)
        });
        state.answered.insert(queue.clone(), number);
    }

    /// Notes that the reply to a claim from one of these queues was lost, or came too late.
    pub(crate) fn doubt<'a>(&self, queues: impl IntoIterator<Item = &'a Queue>) {
        let mut state = self.0.lock();
        state.careful = true;
        state.doubted.extend(queues.into_iter().cloned());
    }

    /// Whether a single task is to be claimed: the last reply may have been too large, and what is in
    /// the next one will tell by whose fault.
    pub(crate) fn is_careful(&self) -> bool {
        self.0.lock().careful
    }

    /// Looks for the tasks of lost claims, if there may be any. No claim may be on its way.
    ///
    /// # Errors
    /// Redis cannot be reached: then it is still to be done. What Redis refuses is left until the leases
    /// end.
    pub(crate) async fn hand_back(
        &self,
        shared: &Shared,
        connections: &Connections,
    ) -> Result<(), BrokerError> {
        let doubted: Vec<_> = self.0.lock().doubted.iter().cloned().collect();
        if doubted.is_empty() {
            return Ok(());
        }
        let link = &connections.claim;
        let queues: Vec<_> = doubted.iter().collect();
        let leased = queues_with(link, &queues, "leases").await?;
        let leased: Vec<_> = leased.into_iter().map(|place| queues[place]).collect();
        let calls = leased
            .iter()
            .map(|queue| self.hand_back_of(shared, connections, queue));
        let calls: Vec<_> = calls.collect();
        let mut calls = stream::iter(calls).buffered(QUEUES_AT_ONCE);
        let mut back = Vec::new();
        let mut place = 0;
        while let Some(handed_back) = calls.next().await {
            let queue = leased[place];
            place += 1;
            match handed_back {
                Err(error) if error.fault() == Fault::Reconnect => return Err(error),
                Err(error) => tracing::debug!(
                    queue = &*queue.name,
                    error = &error as &dyn std::error::Error,
                    "could not look for tasks of lost claims; their leases will run out"
                ),
                Ok(tasks) => back.extend(tasks.into_iter().map(|id| (queue.clone(), id))),
            }
        }
        let mut state = self.0.lock();
        state.doubted.clear();
        if back.len() == 1 {
            state.lost_alone(back.remove(0));
        }
        Ok(())
    }

    /// Releases what a queue has leased to this server by claims after the last one that was answered.
    /// Returns the ids.
    async fn hand_back_of(
        &self,
        shared: &Shared,
        connections: &Connections,
        queue: &Queue,
    ) -> Result<Vec<String>, BrokerError> {
        let link = &connections.claim;
        let after = self.0.lock().answered.get(queue).copied().unwrap_or(0);
        let mut scan = LeaseScan::default();
        let mut handed_back = Vec::new();
        while let Some(mut leases) = scan.step(link, queue, &shared.id, after).await? {
            leases.retain(|leased| self.may_go_back(shared, queue, leased));
            let settlements = leases.into_iter().map(|task| Settlement {
                task,
                how: How::Release { started: false },
            });
            for batch in batches(settlements, |settlement| &settlement.how) {
                let batch: Vec<_> = batch.iter().collect();
                let answers = settle(link, queue, By::Holder, &batch).await?;
                let done = batch
                    .iter()
                    .zip(answers)
                    .filter(|(_, answer)| matches!(answer, Settled::Done(_)));
                handed_back.extend(done.map(|(it, _)| it.task.id.to_string()));
            }
        }
        if !handed_back.is_empty() {
            tracing::info!(
                server.id = &*shared.id,
                queue = &*queue.name,
                tasks = handed_back.len(),
                "the reply to a claim was lost; its tasks are handed back"
            );
        }
        Ok(handed_back)
    }

    /// Whether a task may be handed back once more.
    fn may_go_back(&self, shared: &Shared, queue: &Queue, leased: &LeasedId) -> bool {
        let given_up = {
            let state = self.0.lock();
            state.is_given_up(&(queue.clone(), leased.id.to_string()))
        };
        if given_up {
            log_limited!(
                shared,
                &*queue.name,
                error,
                "a task never arrives when it is claimed: it is too large for the connection, or for the command timeout; its lease is left to run out",
                task.id = &*leased.id,
            );
        }
        !given_up
    }
}
