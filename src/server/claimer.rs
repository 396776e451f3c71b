use std::sync::Arc;
use std::time::Duration;

use futures::future::join_all;
use tokio::sync::OwnedSemaphorePermit;
use tokio::task::yield_now;
use tokio_util::sync::CancellationToken;

use super::connections::Connections;
use super::executor::Executor;
use super::patience::Patience;
use super::phase::Phase;
use super::queues::ServedQueue;
use super::round::Round;
use super::shared::Shared;
use super::shares::shares;
use crate::broker::{BrokerError, Claim, ClaimRequest, claim, wait_for_work};
use crate::defaults::{BLOCK, SCRIPT_TASKS};

/// How long a server that stops may take to hand wake tokens on.
const HAND_ON: Duration = Duration::from_secs(2);

/// Takes tasks for all free slots at once, and blocks for a wake token when there are none.
pub(super) struct Claimer {
    shared: Arc<Shared>,
    connections: Arc<Connections>,
    executor: Executor,
    /// Fires when the server can be seen to live: one that holds leases and is not seen counts as dead.
    seen: CancellationToken,
    /// The place, in the list of queues, of the one whose token was taken last.
    woken: Option<usize>,
}

impl Claimer {
    pub(super) fn new(
        shared: Arc<Shared>,
        connections: Arc<Connections>,
        executor: Executor,
        seen: CancellationToken,
    ) -> Self {
        Self {
            shared,
            connections,
            executor,
            seen,
            woken: None,
        }
    }

    /// Claims until the server becomes quiet or stops; then hands a token on that it may have eaten.
    /// Only waits are cut short: a claim on its way is awaited, because Redis may have leased tasks.
    pub(super) async fn run(mut self) {
        let shared = self.shared.clone();
        let mut patience = Patience::new("claimer");
        shared.unless_quiet(self.seen.cancelled()).await;
        while shared.phases.now() < Phase::Quiet {
            let Some(mut permits) = self.free_slots().await else {
                break;
            };
            let mut round = Round::default();
            let got = self.claim_round(&mut permits, &mut round).await;
            drop(permits);
            let waited = match (got, round.end()) {
                (Ok(0), Ok(())) => {
                    patience.worked(&shared);
                    shared.unless_quiet(self.wait()).await.unwrap_or(Ok(()))
                }
                (Ok(_), Ok(())) => {
                    patience.worked(&shared);
                    // Handlers that end at once free their slots for the same next claim.
                    yield_now().await;
                    Ok(())
                }
                // One queue fails: the others go on while they have work.
                (Ok(1..), Err(error)) => {
                    patience.failed(&shared, &error);
                    Ok(())
                }
                (Ok(0), Err(error)) | (Err(error), _) => Err(error),
            };
            if let Err(error) = waited {
                shared.unless_quiet(patience.wait(&shared, &error)).await;
            }
        }
        // Ends a block that may be on its way.
        self.connections.wake.disconnect().await;
        if tokio::time::timeout(HAND_ON, self.hand_tokens_on())
            .await
            .is_err()
        {
            tracing::debug!(
                "could not hand wake tokens on in time; the others' polls stand in for them"
            );
        }
    }

    async fn hand_tokens_on(&self) {
        for served in self.shared.queues.now().iter() {
            if let Err(error) = self.claim(served, 0).await {
                tracing::debug!(
                    queue = &*served.queue.name,
                    error = &error as &dyn std::error::Error,
                    "could not hand a wake token on; the others' polls stand in for it"
                );
            }
        }
    }

    /// All slots that are free, at least one; `None` when the server became quiet first.
    async fn free_slots(&self) -> Option<OwnedSemaphorePermit> {
        let slots = &self.shared.slots;
        // The semaphore is never closed.
        let mut permits = self
            .shared
            .unless_quiet(slots.clone().acquire_owned())
            .await?
            .ok()?;
        let more = slots.available_permits().try_into().unwrap_or(u32::MAX);
        if let Ok(more) = slots.clone().try_acquire_many_owned(more) {
            permits.merge(more);
        }
        Some(permits)
    }

    /// Asks every queue for its share of the free slots, then those that may have more for what is
    /// left. Answers how many tasks it got, and notes in `round` what Redis refused for single queues.
    async fn claim_round(
        &mut self,
        permits: &mut OwnedSemaphorePermit,
        round: &mut Round,
    ) -> Result<usize, BrokerError> {
        let queues = self.shared.queues.now();
        let woken = self.woken.take();
        if self.shared.config.strict {
            return self.claim_in_order(&queues, permits, round).await;
        }
        let slots = permits.num_permits();
        let weights: Vec<u32> = queues.iter().map(|served| served.weight).collect();
        let mut asked = shares(slots, &weights);
        let must_ask = |place: usize| woken == Some(place);
        let first = self
            .claim_shares(&queues, &asked, must_ask, permits, round)
            .await?;
        let left = permits.num_permits();
        if left == 0 || queues.len() == 1 {
            return Ok(slots - left);
        }
        let weights: Vec<u32> = queues
            .iter()
            .enumerate()
            .map(|(place, served)| {
                if first[place] || asked[place] == 0 {
                    served.weight
                } else {
                    0
                }
            })
            .collect();
        asked = shares(left, &weights);
        self.claim_shares(&queues, &asked, |_| false, permits, round)
            .await?;
        Ok(slots - permits.num_permits())
    }

    /// Claims in one pipeline; answers which queues have more. What was claimed is started even when
    /// another queue's call failed.
    async fn claim_shares(
        &self,
        queues: &[ServedQueue],
        room: &[usize],
        must_ask: impl Fn(usize) -> bool,
        permits: &mut OwnedSemaphorePermit,
        round: &mut Round,
    ) -> Result<Vec<bool>, BrokerError> {
        let places = (0..queues.len()).filter(|&place| room[place] > 0 || must_ask(place));
        let calls = places
            .map(|place| async move { (place, self.claim(&queues[place], room[place]).await) });
        let mut more = vec![false; queues.len()];
        let mut reached = Ok(());
        for (place, claimed) in join_all(calls).await {
            match claimed {
                Ok(claimed) => {
                    more[place] = claimed.more;
                    self.executor.start(&queues[place].queue, claimed, permits);
                }
                Err(error) => reached = reached.and(round.note(Err(error))),
            }
        }
        reached.map(|()| more)
    }

    async fn claim_in_order(
        &self,
        queues: &[ServedQueue],
        permits: &mut OwnedSemaphorePermit,
        round: &mut Round,
    ) -> Result<usize, BrokerError> {
        let slots = permits.num_permits();
        for served in queues {
            // Also without room: this may be the queue whose token was taken.
            match self.claim(served, permits.num_permits()).await {
                Ok(claimed) => self.executor.start(&served.queue, claimed, permits),
                Err(error) => round.note(Err(error))?,
            }
        }
        Ok(slots - permits.num_permits())
    }

    async fn claim(&self, served: &ServedQueue, room: usize) -> Result<Claim, BrokerError> {
        let request = ClaimRequest {
            server: &self.shared.id,
            room: room.min(SCRIPT_TASKS),
            lease: self.shared.config.lease,
        };
        let claimed = claim(&self.connections.claim, &served.queue, request).await?;
        self.shared.vitals.claim_answered();
        if let Some(next_due) = claimed.next_due {
            self.shared.due.hint(&served.queue, next_due);
        }
        Ok(claimed)
    }

    /// Blocks until there may be work. The jitter keeps many servers from polling in step.
    async fn wait(&mut self) -> Result<(), BrokerError> {
        let queues = self.shared.queues.now();
        let block = BLOCK.mul_f64(rand::random_range(0.9..1.0));
        if queues.is_empty() {
            tokio::time::sleep(block).await;
            return Ok(());
        }
        let names = queues.iter().map(|served| &served.queue);
        self.woken = wait_for_work(&self.connections.wake, names, block).await?;
        Ok(())
    }
}
