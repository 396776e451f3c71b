use std::collections::BTreeSet;
use std::future::pending;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures::future::{join, join_all};
use tokio::select;
use tokio::sync::OwnedSemaphorePermit;
use tokio::task::yield_now;
use tokio_util::sync::CancellationToken;

use crate::broker::{
    BrokerError, Claim, ClaimRequest, Link, Queue, claim, queues_with, unblock, wait_for_work,
};
use crate::defaults::{BLOCK, SCRIPT_TASKS};
use crate::server::claim::board::Board;
use crate::server::claim::lost_claims::LostClaims;
use crate::server::claim::redis_clock::RedisClock;
use crate::server::observe::log_limit::log_limited;
use crate::server::phase::Phase;
use crate::server::run::executor::Executor;
use crate::server::settle::report;
use crate::server::shared::Shared;
use crate::server::shared::backoff::Backoff;
use crate::server::shared::connections::Connections;
use crate::server::shared::each_queue::EachQueue;

/// How long a server that stops may take to hand wake tokens on.
const HAND_ON: Duration = Duration::from_secs(2);
/// Up to so many queues are claimed from behind a block, where each costs an idle server five commands
/// a second. More are looked at, hundreds in a command.
const CLAIMED_BEHIND_BLOCK: usize = 2;

/// Takes tasks for all free slots at once, and blocks for a wake token when there are none.
///
/// It asks the queues that may have work ([`Board`]), and looks at the others now and then, all in one
/// command: neither what it does in a round nor what it costs in idleness grows with them.
pub(crate) struct Claimer {
    shared: Arc<Shared>,
    connections: Arc<Connections>,
    executor: Executor,
    /// Fires when the server can be seen to live: one that holds leases and is not seen counts as dead.
    seen: CancellationToken,
    board: Board,
    each_queue: EachQueue,
    clock: RedisClock,
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
            board: Board::new(shared.queues.now()),
            shared,
            connections,
            executor,
            seen,
            each_queue: EachQueue::new("claimer"),
            clock: RedisClock::default(),
            lost_claims: LostClaims::default(),
        }
    }

    /// Claims until the server stops, but not while it is quiet.
    pub(crate) async fn run(mut self) {
        let shared = self.shared.clone();
        let mut backoff = Backoff::new("claimer");
        loop {
            self.claim_until_quiet(&mut backoff).await;
            self.hand_on().await;
            if shared.phases.not_quiet().await > Phase::Quiet {
                break;
            }
            self.board.suspect_all();
        }
    }

    /// No claim that is on its way is dropped, because Redis may have leased tasks.
    async fn claim_until_quiet(&mut self, backoff: &mut Backoff) {
        let shared = self.shared.clone();
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
                    let pause = backoff.failed(&shared, &error);
                    shared.unless_quiet(tokio::time::sleep(pause)).await;
                }
            }
        }
    }

    /// Hands on a token that it may have eaten, and tasks whose claims' answers were lost.
    async fn hand_on(&mut self) {
        let hand_on = async {
            // When it fails, the leases run out.
            let hand_back = self.lost_claims.hand_back(&self.shared, &self.connections);
            let _ = hand_back.await;
            self.hand_token_on().await;
        };
        if tokio::time::timeout(HAND_ON, hand_on).await.is_err() {
            tracing::debug!(
                "could not hand a wake token on in time; the others' looks make up for it"
            );
        }
    }

    /// Asks Redis for work once, at the right pace.
    async fn ask(&mut self, permits: &mut OwnedSemaphorePermit) -> Result<(), BrokerError> {
        let hand_back = self.lost_claims.hand_back(&self.shared, &self.connections);
        hand_back.await?;
        self.board.renew(self.shared.queues.now());
        // In strict order, a look must come before each round: an earlier queue may have work now.
        if self.shared.config.strict || self.board.look_is_due() {
            self.look(permits).await?;
        }
        if self.ready(self.board.with_work()).is_empty() {
            self.wait(permits).await
        } else if self.shared.config.strict {
            self.claim_in_order(permits).await
        } else {
            self.claim_round(permits).await
        }
    }

    /// Finds out which of the queues that it would not ask have pending tasks. Asks the queue that woke
    /// it for a task meanwhile.
    async fn look(&mut self, permits: &mut OwnedSemaphorePermit) -> Result<(), BrokerError> {
        if self.claims_behind_block() {
            self.board.suspect_all();
            return Ok(());
        }
        let mut unknown = self.board.unknown();
        unknown.retain(|&place| self.each_queue.is_ready(self.board.queue(place)));
        let queues: Vec<_> = unknown.iter().map(|&it| self.board.queue(it)).collect();
        let link = &self.connections.claim;
        let look = queues_with(link, &queues, "pending");
        // In strict order an earlier queue may have work, too.
        let woken = self.board.woken().filter(|_| !self.shared.config.strict);
        let woken: Vec<_> = woken.map(|place| (place, 1)).into_iter().collect();
        let (pending, claims) = join(look, self.claim_each(link, &woken)).await;
        self.start(claims, permits)?;
        self.board.saw(pending?.into_iter().map(|it| unknown[it]));
        self.shared.vitals.claim_answered();
        Ok(())
    }

    /// Whether claims are sent behind each block.
    fn claims_behind_block(&self) -> bool {
        let queues = self.board.queues().len();
        let most = if self.shared.config.strict {
            // The others must wait until the first has nothing.
            1
        } else {
            CLAIMED_BEHIND_BLOCK.min(self.shared.config.concurrency)
        };
        queues <= most
    }

    async fn hand_token_on(&self) {
        let Some(place) = self.board.woken() else {
            return;
        };
        let queue = self.board.queue(place);
        if let Err(error) = self.claim(&self.connections.claim, queue, 0).await {
            tracing::debug!(
                queue = &*queue.name,
                error = &error as &dyn std::error::Error,
                "could not hand a wake token on; the others' looks make up for it"
            );
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
                let permit = self.shared.unless_quiet(permit).await;
                vitals.claimer_waits_for_slots(false);
                // The semaphore is never closed.
                permit?.ok()?
            }
        };
        let more = slots.available_permits().try_into().unwrap_or(u32::MAX);
        if let Ok(more) = slots.clone().try_acquire_many_owned(more) {
            permits.merge(more);
        }
        Some(permits)
    }

    /// Divides the free slots over the queues that may have work, then what is left over those that have
    /// more, until all were asked or no slot is free.
    async fn claim_round(&mut self, permits: &mut OwnedSemaphorePermit) -> Result<(), BrokerError> {
        let connections = self.connections.clone();
        let mut left = self.ready(self.board.with_work());
        while !left.is_empty() && permits.num_permits() > 0 {
            let rooms = self.board.rooms(&left, permits.num_permits());
            let claims = self.claim_each(&connections.claim, &rooms).await;
            for (place, _) in rooms {
                left.remove(&place);
            }
            left.append(&mut self.start(claims, permits)?);
        }
        Ok(())
    }

    /// Claims from one queue after the other: from a later one only when the earlier ones have no more.
    async fn claim_in_order(
        &mut self,
        permits: &mut OwnedSemaphorePermit,
    ) -> Result<(), BrokerError> {
        let connections = self.connections.clone();
        for place in self.ready(self.board.with_work()) {
            let room = permits.num_permits();
            // Also without room, the queue whose token was taken.
            if room > 0 || self.board.woken() == Some(place) {
                let claims = self.claim_each(&connections.claim, &[(place, room)]).await;
                self.start(claims, permits)?;
            }
        }
        Ok(())
    }

    fn ready(&self, places: &BTreeSet<usize>) -> BTreeSet<usize> {
        let is_ready = |place: &&usize| self.each_queue.is_ready(self.board.queue(**place));
        places.iter().filter(is_ready).copied().collect()
    }

    /// Claims so many tasks from each of these queues, in one pipeline.
    async fn claim_each(&self, link: &Link, rooms: &[(usize, usize)]) -> Vec<Claimed> {
        // After a lost reply a single task is claimed: if that is lost again, it is known by whose fault.
        let is_careful = self.lost_claims.is_careful();
        let (queues, most) = if is_careful {
            (1, 1)
        } else {
            (rooms.len(), SCRIPT_TASKS)
        };
        let claims = rooms.iter().take(queues).map(|&(place, room)| async move {
            let queue = self.board.queue(place);
            (place, self.claim(link, queue, room.min(most)).await)
        });
        join_all(claims).await
    }

    /// Starts what claims brought, also where the call for another queue failed. Returns which queues
    /// have more.
    fn start(
        &mut self,
        claims: Vec<Claimed>,
        permits: &mut OwnedSemaphorePermit,
    ) -> Result<BTreeSet<usize>, BrokerError> {
        let mut more = BTreeSet::new();
        let mut reached = Ok(());
        for (place, claimed) in claims {
            let queue = self.board.queue(place).clone();
            match self.each_queue.note(&self.shared, &queue, claimed) {
                Ok(Some(claimed)) => {
                    self.board.asked(place, claimed.tasks.len(), claimed.more);
                    if claimed.more {
                        more.insert(place);
                    }
                    self.executor.start(&queue, claimed, permits);
                }
                Ok(None) => self.board.refused(place),
                Err(error) => reached = Err(error),
            }
        }
        reached.map(|()| more)
    }

    async fn claim(&self, link: &Link, queue: &Queue, room: usize) -> Result<Claim, BrokerError> {
        let shared = &self.shared;
        let request = ClaimRequest {
            server: &shared.id,
            room,
            lease: shared.config.lease,
            hooked_kind: shared.routes.hooked_kinds().next(),
            not_after: self.clock.in_future(link.response_timeout()),
        };
        let sent = Instant::now();
        let claimed = claim(link, queue, request).await;
        let mut claimed = claimed.inspect_err(|error| {
            if error.outcome_unknown() {
                self.lost_claims.doubt([queue]);
            }
        })?;
        if claimed.lacks_hooks {
            shared.register_hooks(link, queue).await?;
        }
        let age = self.clock.heard(sent, claimed.now);
        if age >= shared.config.lease && !claimed.tasks.is_empty() {
            log_limited!(
                shared,
                &*queue.name,
                warn,
                "this server stood still for longer than a lease: what it had claimed before is not started",
                ?age,
            );
            self.lost_claims.doubt([queue]);
            claimed.tasks.clear();
            return Ok(claimed);
        }
        if !claimed.tasks.is_empty() {
            self.lost_claims.answered(shared, queue, &claimed);
        }
        shared.vitals.claim_answered();
        shared.counters.claimed.add(claimed.tasks.len());
        shared.malformed(&queue.name, &claimed.malformed);
        report::expired(shared, queue, &claimed.expired);
        if let Some(next_due) = claimed.next_due {
            shared.due.hint(queue, next_due);
        }
        Ok(claimed)
    }

    /// Blocks until there may be work. With few queues, claims from each right behind the block, on the
    /// same connection: a task that comes costs no second way to Redis. One task each, because what a
    /// server that dies or freezes in its sleep has claimed waits for its lease to end.
    async fn wait(&mut self, permits: &mut OwnedSemaphorePermit) -> Result<(), BrokerError> {
        let queues = self.board.queues().clone();
        let is_ready = |place: &usize| self.each_queue.is_ready(&queues[*place].queue);
        let ready: Vec<usize> = (0..queues.len()).filter(is_ready).collect();
        // The jitter keeps many servers from looking in step.
        let block = BLOCK.mul_f64(rand::random_range(0.9..1.0));
        let (Some(first), false) = (queues.first(), ready.is_empty()) else {
            let change =
                tokio::time::timeout(self.until_ready(block), self.shared.queues.changed());
            self.shared.unless_quiet(change).await;
            return Ok(());
        };
        let rooms: Vec<_> = if self.claims_behind_block() {
            let places = ready.iter().map(|&place| (place, 1));
            places.take(permits.num_permits()).collect()
        } else {
            Vec::new()
        };
        let link = &self.connections.wake;
        // Now, because who has to wait for a connection may send later than who is polled behind it.
        link.ready().await?;
        let names = ready.iter().map(|&place| &queues[place].queue);
        let block = self.until_ready(block);
        let block = wait_for_work(link, &self.shared.id, &first.queue, names, block);
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
        let (woken, claims) = select! {
            biased;
            // Polled in this order, so sent in it.
            waited = join(block, self.claim_each(link, &rooms)) => waited,
            never = unblock => never,
        };
        self.shared.vitals.claim_answered();
        // Before the claims are noted, because they answer for the token.
        if let Ok(Some(place)) = woken {
            self.board.wake(ready[place]);
        }
        if rooms.len() == ready.len() {
            self.board.asked_all();
        }
        self.start(claims, permits)?;
        woken.map(drop)
    }

    /// How long to block at most: until a queue that Redis refused is to be tried again.
    fn until_ready(&self, block: Duration) -> Duration {
        let ready = self.each_queue.next_ready();
        let ready = ready.map(|at| at.saturating_duration_since(Instant::now()));
        ready.map_or(block, |ready| ready.clamp(Duration::from_millis(10), block))
    }
}

/// What a claim from the queue at this place brought.
type Claimed = (usize, Result<Claim, BrokerError>);
