use std::collections::HashMap;

use parking_lot::Mutex;

use crate::broker::{BrokerError, By, How, LeaseScan, Queue, Settled, Settlement, batches, settle};
use crate::server::queue_errors::QueueErrors;
use crate::server::setup::connections::Connections;
use crate::server::shared::Shared;

/// Hands back the tasks of claims whose replies were lost. There is at most one such claim of a queue,
/// and its number is higher than those of all claims whose replies came. So this never touches what
/// runs, nor what Redis refused to settle, which is left until its lease ends.
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
    /// Notes that the reply to a claim came. A queue that is no longer served is forgotten with its last attempt.
    pub(crate) fn answered(&self, shared: &Shared, queue: &Queue, number: u64) {
        let mut state = self.0.lock();
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

    /// Notes that the reply to a claim was lost.
    pub(crate) fn doubt(&self) {
        self.0.lock().due = true;
    }

    /// Looks for the tasks of lost claims, if there may be any. No claim may be on its way.
    ///
    /// # Errors
    /// Redis cannot be reached: then it is still due. What Redis refuses is left until the leases end.
    pub(crate) async fn hand_back(
        &self,
        shared: &Shared,
        connections: &Connections,
    ) -> Result<(), BrokerError> {
        if !self.0.lock().due {
            return Ok(());
        }
        let mut errors = QueueErrors::default();
        for served in shared.queues.now().iter() {
            let queue = &served.queue;
            let after = self.0.lock().answered.get(queue).copied().unwrap_or(0);
            errors.note(hand_back_from(shared, connections, queue, after).await)?;
        }
        self.0.lock().due = false;
        if let Err(error) = errors.end() {
            tracing::debug!(
                error = &error as &dyn std::error::Error,
                "could not look for tasks of lost claims; their leases will run out"
            );
        }
        Ok(())
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
        let settlements = leases.into_iter().map(|task| Settlement {
            task,
            how: How::Release { started: false },
        });
        for batch in batches(settlements, |settlement| &settlement.how) {
            let batch: Vec<_> = batch.iter().collect();
            let answers = settle(link, queue, By::Holder, &batch).await?;
            let done = answers
                .iter()
                .filter(|answer| matches!(answer, Settled::Done(_)));
            handed_back += done.count();
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
