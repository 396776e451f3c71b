use std::collections::{HashMap, HashSet};

use parking_lot::Mutex;

use crate::broker::{
    BrokerError, By, Claim, Fault, How, LeaseScan, Queue, Settled, Settlement, batches, settle,
};
use crate::server::observe::log_limit::log_limited;
use crate::server::setup::connections::Connections;
use crate::server::shared::Shared;

/// So often a task is handed back because the reply to its claim was lost; then it may be too large for
/// the connection, and its lease is left to run out, so that it holds up nothing behind it.
const HAND_BACKS: u8 = 3;
/// How many tasks it remembers to have handed back.
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
    /// How often each task was handed back.
    handed_back: HashMap<(Queue, String), u8>,
}

impl LostClaims {
    /// Notes a claim that brought something. A queue that is no longer served is forgotten with its last
    /// attempt.
    pub(crate) fn answered(&self, shared: &Shared, queue: &Queue, claim: &Claim) {
        let mut state = self.0.lock();
        let number = claim.number;
        if !state.handed_back.is_empty() {
            let arrived = |(of, id): &(Queue, String)| {
                of == queue && claim.tasks.iter().any(|task| *task.leased.id == **id)
            };
            state.handed_back.retain(|task, _| !arrived(task));
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

    /// Notes that the reply to a claim was lost, or came too late.
    pub(crate) fn doubt(&self, queue: &Queue) {
        self.0.lock().doubted.insert(queue.clone());
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
        for queue in &doubted {
            match self.hand_back_of(shared, connections, queue).await {
                Err(error) if error.fault() == Fault::Reconnect => return Err(error),
                Err(error) => tracing::debug!(
                    queue = &*queue.name,
                    error = &error as &dyn std::error::Error,
                    "could not look for tasks of lost claims; their leases will run out"
                ),
                Ok(()) => {}
            }
            self.0.lock().doubted.remove(queue);
        }
        Ok(())
    }

    /// Releases what a queue has leased to this server by claims after the last one that was answered.
    async fn hand_back_of(
        &self,
        shared: &Shared,
        connections: &Connections,
        queue: &Queue,
    ) -> Result<(), BrokerError> {
        let link = &connections.claim;
        let after = self.0.lock().answered.get(queue).copied().unwrap_or(0);
        let mut scan = LeaseScan::default();
        let mut handed_back = 0;
        while let Some(leases) = scan.step(link, queue, &shared.id, after).await? {
            let mut leases = leases;
            leases.retain(|task| self.may_go_back(shared, queue, &task.id));
            let settlements = leases.into_iter().map(|task| Settlement {
                task,
                how: How::Release { started: false },
            });
            for batch in batches(settlements, |settlement| &settlement.how) {
                let batch: Vec<_> = batch.iter().collect();
                let answers = settle(link, queue, By::Holder, &batch).await?;
                for (settlement, answer) in batch.iter().zip(answers) {
                    if matches!(answer, Settled::Done(_)) {
                        handed_back += 1;
                        self.went_back(queue, &settlement.task.id);
                    }
                }
            }
        }
        if handed_back > 0 {
            tracing::info!(
                server.id = &*shared.id,
                queue = &*queue.name,
                tasks = handed_back,
                "the reply to a claim was lost; its tasks are handed back"
            );
        }
        Ok(())
    }

    /// Whether a task may be handed back once more.
    fn may_go_back(&self, shared: &Shared, queue: &Queue, id: &str) -> bool {
        let task = (queue.clone(), id.to_owned());
        let times = self.0.lock().handed_back.get(&task).copied();
        let may = times.is_none_or(|times| times < HAND_BACKS);
        if !may {
            log_limited!(
                shared,
                &*queue.name,
                error,
                "a task never arrives with its claim: is it too large for the connection or the command timeout? Its lease is left to run out",
                task.id = id,
            );
        }
        may
    }

    fn went_back(&self, queue: &Queue, id: &str) {
        let mut state = self.0.lock();
        if state.handed_back.len() >= REMEMBERED {
            state.handed_back.clear();
        }
        let task = (queue.clone(), id.to_owned());
        *state.handed_back.entry(task).or_default() += 1;
    }
}
