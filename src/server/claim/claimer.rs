use std::future::pending;
use std::sync::Arc;
use std::time::Duration;

use futures::future::{join, join_all};
use tokio::select;
use tokio::sync::OwnedSemaphorePermit;
use tokio::task::yield_now;
use tokio_util::sync::CancellationToken;

use crate::broker::{
    BrokerError, Claim, ClaimRequest, Fault, Link, Queue, claim, unblock, wait_for_work,
};
use crate::defaults::{BLOCK, SCRIPT_TASKS};
use crate::server::backoff::Backoff;
use crate::server::claim::lost_claims::LostClaims;
use crate::server::claim::weights::divide;
use crate::server::control::phase::Phase;
use crate::server::queue_errors::QueueErrors;
use crate::server::queues::ServedQueue;
use crate::server::run::executor::Executor;
use crate::server::settle::report;
use crate::server::setup::connections::Connections;
use crate::server::shared::Shared;

/// How long a server that stops may take to hand wake tokens on.
const HAND_ON: Duration = Duration::from_secs(2);

/// Takes tasks for all free slots at once, and blocks for a wake token when there are none.
pub(crate) struct Claimer {
    shared: Arc<Shared>,
    connections: Arc<Connections>,
    executor: Executor,
    /// Fires when the server can be seen to live: one that holds leases and is not seen counts as dead.
    seen: CancellationToken,
    /// The queue whose token was taken but which was not asked yet.
    woken: Option<Queue>,
    /// Every queue was asked, and had nothing: it is time to block.
    dry: bool,
    lost_claims: LostClaims,
}

impl Claimer {
    pub(crate) fn new(
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
            dry: false,
            lost_claims: LostClaims::default(),
        }
    }

    /// Claims until the server becomes quiet or stops; then hands a token on that it may have eaten.
    /// No claim that is on its way is dropped, because Redis may have leased tasks.
    pub(crate) async fn run(mut self) {
        let shared = self.shared.clone();
        let mut backoff = Backoff::new("claimer");
        shared.unless_quiet(self.seen.cancelled()).await;
        while shared.phases.now() < Phase::Quiet {
            let Some(mut permits) = self.free_slots().await else {
                break;
            };
            let slots = permits.num_permits();
            let asked = self.ask(&mut permits).await;
            let got = slots - permits.num_permits();
            drop(permits);
            match asked {
                Ok(()) => {
                    backoff.worked(&shared);
                    if got > 0 {
                        // Handlers that end at once free their slots for the same next claim.
                        yield_now().await;
                    }
                }
                Err(error) => {
                    self.dry = false;
                    let pause = backoff.failed(&shared, &error);
                    // One queue fails: the others go on while they have work.
                    if got == 0 || error.fault() == Fault::Reconnect {
                        shared.unless_quiet(tokio::time::sleep(pause)).await;
                    }
                }
            }
        }
        let hand_on = async {
            // When it fails, the leases run out.
            let _ = self.lost_claims.hand_back(&shared, &self.connections).await;
            self.hand_tokens_on().await;
        };
        if tokio::time::timeout(HAND_ON, hand_on).await.is_err() {
            tracing::debug!(
                "could not hand wake tokens on in time; the others' polls stand in for them"
            );
        }
    }

    /// Asks Redis for work once, at the right pace.
    async fn ask(&mut self, permits: &mut OwnedSemaphorePermit) -> Result<(), BrokerError> {
        self.lost_claims
            .hand_back(&self.shared, &self.connections)
            .await?;
        let mut errors = QueueErrors::default();
        if self.dry {
            self.wait(permits, &mut errors).await?;
        } else {
            let slots = permits.num_permits();
            self.claim_round(permits, &mut errors).await?;
            self.dry = permits.num_permits() == slots;
        }
        errors.end()
    }

    async fn hand_tokens_on(&self) {
        let link = &self.connections.claim;
        for served in self.shared.queues.now().iter() {
            if let Err(error) = self.claim(link, served, 0).await {
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
        let mut permits = match slots.clone().try_acquire_owned() {
            Ok(permit) => permit,
            Err(_) => {
                let vitals = &self.shared.vitals;
                vitals.claimer_waits_for_slots(true);
                let permit = slots.clone().acquire_owned();
                // The semaphore is never closed.
                let permit = self.shared.unless_quiet(permit).await?.ok()?;
                vitals.claimer_waits_for_slots(false);
                permit
            }
        };
        let more = slots.available_permits().try_into().unwrap_or(u32::MAX);
        if let Ok(more) = slots.clone().try_acquire_many_owned(more) {
            permits.merge(more);
        }
        Some(permits)
    }

    /// Asks every queue for its share of the free slots, then those that may have more for what is
    /// left. Notes in `round` what Redis refused for single queues.
    async fn claim_round(
        &mut self,
        permits: &mut OwnedSemaphorePermit,
        errors: &mut QueueErrors,
    ) -> Result<(), BrokerError> {
        let link = &self.connections.claim;
        let queues = self.shared.queues.now();
        let woken = self.woken.take();
        if self.shared.config.strict {
            return self.claim_in_order(&queues, permits, errors).await;
        }
        let weights: Vec<u32> = queues.iter().map(|served| served.weight).collect();
        let mut asked = divide(permits.num_permits(), &weights);
        let must_ask = |place: usize| woken.as_ref() == Some(&queues[place].queue);
        let first = self
            .claim_shares(link, &queues, &asked, must_ask, permits, errors)
            .await?;
        let left = permits.num_permits();
        if left == 0 || queues.len() == 1 {
            return Ok(());
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
        asked = divide(left, &weights);
        self.claim_shares(link, &queues, &asked, |_| false, permits, errors)
            .await
            .map(drop)
    }

    /// Claims in one pipeline; answers which queues have more. What was claimed is started even when
    /// another queue's call failed.
    async fn claim_shares(
        &self,
        link: &Link,
        queues: &[ServedQueue],
        room: &[usize],
        must_ask: impl Fn(usize) -> bool,
        permits: &mut OwnedSemaphorePermit,
        errors: &mut QueueErrors,
    ) -> Result<Vec<bool>, BrokerError> {
        let places = (0..queues.len()).filter(|&place| room[place] > 0 || must_ask(place));
        let calls = places.map(|place| async move {
            (place, self.claim(link, &queues[place], room[place]).await)
        });
        let mut more = vec![false; queues.len()];
        let mut reached = Ok(());
        for (place, claimed) in join_all(calls).await {
            match claimed {
                Ok(claimed) => {
                    more[place] = claimed.more;
                    self.executor.start(&queues[place].queue, claimed, permits);
                }
                Err(error) => reached = reached.and(errors.note(Err(error))),
            }
        }
        reached.map(|()| more)
    }

    async fn claim_in_order(
        &self,
        queues: &[ServedQueue],
        permits: &mut OwnedSemaphorePermit,
        errors: &mut QueueErrors,
    ) -> Result<(), BrokerError> {
        for served in queues {
            // Also without room: this may be the queue whose token was taken.
            let claim = self.claim(&self.connections.claim, served, permits.num_permits());
            match claim.await {
                Ok(claimed) => self.executor.start(&served.queue, claimed, permits),
                Err(error) => errors.note(Err(error))?,
            }
        }
        Ok(())
    }

    async fn claim(
        &self,
        link: &Link,
        served: &ServedQueue,
        room: usize,
    ) -> Result<Claim, BrokerError> {
        let request = ClaimRequest {
            server: &self.shared.id,
            room: room.min(SCRIPT_TASKS),
            lease: self.shared.config.lease,
        };
        let claimed = claim(link, &served.queue, request).await;
        let claimed = claimed.inspect_err(|error| {
            if error.outcome_unknown() {
                self.lost_claims.doubt();
            }
        })?;
        if !claimed.tasks.is_empty() {
            let (queue, number) = (&served.queue, claimed.number);
            self.lost_claims.answered(&self.shared, queue, number);
        }
        let shared = &self.shared;
        shared.vitals.claim_answered();
        shared.counters.claimed.add(claimed.tasks.len());
        shared.malformed(&served.queue.name, &claimed.malformed);
        report::expired(shared, &served.queue, &claimed.expired);
        if let Some(next_due) = claimed.next_due {
            shared.due.hint(&served.queue, next_due);
        }
        Ok(claimed)
    }

    /// Blocks until there may be work, and claims from each queue right behind the block, on the same
    /// connection: a task that comes costs no second way to Redis. One task each, because what a server
    /// that dies or freezes in its sleep has claimed waits for its lease to end.
    async fn wait(
        &mut self,
        permits: &mut OwnedSemaphorePermit,
        errors: &mut QueueErrors,
    ) -> Result<(), BrokerError> {
        let queues = self.shared.queues.now();
        // The jitter keeps many servers from polling in step.
        let block = BLOCK.mul_f64(rand::random_range(0.9..1.0));
        let Some(first) = queues.first() else {
            self.dry = false;
            let change = tokio::time::timeout(block, self.shared.queues.changed());
            self.shared.unless_quiet(change).await;
            return Ok(());
        };
        let slots = permits.num_permits();
        let room = self.room_behind_block(slots, &queues);
        let link = &self.connections.wake;
        // Now, because who has to wait for a connection may send later than who is polled behind it.
        link.connect().await?;
        let names = queues.iter().map(|served| &served.queue);
        let block = wait_for_work(link, &self.shared.id, names, block);
        let claims = self.claim_shares(link, &queues, &room, |_| false, permits, errors);
        let unblock = async {
            select! {
                () = self.shared.phases.reached(Phase::Quiet) => {}
                () = self.shared.queues.changed() => {}
            }
            // When it fails, the block ends by itself.
            let link = &self.connections.claim;
            let _ = unblock(link, &first.queue, &self.shared.id, BLOCK).await;
            pending().await
        };
        let (woken, claimed) = select! {
            biased;
            // Polled in this order, so sent in it.
            waited = join(block, claims) => waited,
            never = unblock => never,
        };
        let woken = woken?;
        claimed?;
        let stays_dry = woken.is_none() && permits.num_permits() == slots;
        self.woken = woken
            .filter(|&place| room[place] == 0)
            .map(|place| queues[place].queue.clone());
        self.dry = stays_dry && room.iter().all(|&room| room > 0);
        Ok(())
    }

    /// What to claim from each queue once a block ends.
    fn room_behind_block(&self, slots: usize, queues: &[ServedQueue]) -> Vec<usize> {
        if self.shared.config.strict {
            // The others must wait until the first has nothing.
            return (0..queues.len())
                .map(|place| usize::from(place == 0))
                .collect();
        }
        if slots >= queues.len() {
            return vec![1; queues.len()];
        }
        let weights: Vec<u32> = queues.iter().map(|served| served.weight).collect();
        let shares = divide(slots, &weights).into_iter();
        shares.map(|share| share.min(1)).collect()
    }
}
