use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::broker::{BrokerError, LeaseScan, Queue, Releasal, Settled, release};
use crate::defaults::SCRIPT_RECORDS;
use crate::server::queue_errors::QueueErrors;
use crate::server::setup::connections::Connections;
use crate::server::shared::Shared;

/// Hands back the tasks of claims whose answers were lost. There is at most one such claim of a queue,
/// and its number is above those of all claims that were answered: so what runs, and what Redis refused
/// to settle and is left to the end of its lease, is never touched.
#[derive(Default)]
pub(crate) struct LostClaims(Mutex<State>);

#[derive(Default)]
struct State {
    /// The number of the last claim that brought something, by queue.
    answered: HashMap<Queue, u64>,
    /// An answer was lost.
    due: bool,
}

impl LostClaims {
    /// Notes that a claim was answered. A queue that is served no longer is forgotten with its last run.
    pub(crate) fn answered(&self, shared: &Shared, queue: &Queue, number: u64) {
        let mut state = self.state();
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

    /// Notes that the answer of a claim was lost.
    pub(crate) fn doubt(&self) {
        self.state().due = true;
    }

    /// Looks for the tasks of lost claims, if there may be any. No claim may be on its way.
    ///
    /// # Errors
    /// Redis cannot be reached: then it is still due. What Redis refuses is left to the leases' end.
    pub(crate) async fn hand_back(
        &self,
        shared: &Shared,
        connections: &Connections,
    ) -> Result<(), BrokerError> {
        if !self.state().due {
            return Ok(());
        }
        let mut errors = QueueErrors::default();
        for served in shared.queues.now().iter() {
            let queue = &served.queue;
            let after = self.state().answered.get(queue).copied().unwrap_or(0);
            errors.note(hand_back_from(shared, connections, queue, after).await)?;
        }
        self.state().due = false;
        if let Err(error) = errors.end() {
            tracing::debug!(
                error = &error as &dyn std::error::Error,
                "could not look for tasks of lost claims; their leases will run out"
            );
        }
        Ok(())
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Releases what a queue has leased to this server by claims after this one.
async fn hand_back_from(
    shared: &Shared,
    connections: &Connections,
    queue: &Queue,
    after: u64,
) -> Result<(), BrokerError> {
    let link = &connections.claim;
    let mut scan = LeaseScan::default();
    let mut handed_back = 0;
    while let Some(leases) = scan.step(link, queue, &shared.id, after).await? {
        for tasks in leases.chunks(SCRIPT_RECORDS) {
            let tasks: Vec<_> = tasks
                .iter()
                .map(|task| Releasal {
                    task: task.clone(),
                    started: false,
                })
                .collect();
            let answers = release(link, queue, &tasks).await?;
            handed_back += answers.iter().filter(|&&a| a == Settled::Done).count();
        }
    }
    if handed_back > 0 {
        tracing::info!(
            server.id = &*shared.id,
            queue = &*queue.name,
            tasks = handed_back,
            "the answer of a claim was lost; its tasks are handed back"
        );
    }
    Ok(())
}
