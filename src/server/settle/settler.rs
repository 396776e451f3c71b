use std::collections::HashMap;
use std::sync::Arc;

use futures::future::join_all;
use futures::stream::{self, FuturesUnordered, StreamExt};
use parking_lot::Mutex;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::broker::{BrokerError, By, Fault, Link, Queue, Settled, Settlement, batches, settle};
use crate::defaults::SCRIPT_TASKS;
use crate::server::observe::event::Event;
use crate::server::observe::log_limit::log_limited;
use crate::server::settle::report;
use crate::server::shared::Shared;
use crate::server::shared::attempt::Attempt;
use crate::server::shared::backoff::Backoff;
use crate::server::shared::connections::Connections;

/// An attempt whose handler has ended, on its way to Redis.
pub(crate) struct EndedAttempt {
    pub(crate) attempt: Arc<Attempt>,
    pub(crate) settlement: Settlement,
}

/// A queue's ended attempts.
type Opened = (Queue, mpsc::Receiver<EndedAttempt>);

/// Brings the channels that are opened to the settler.
type OpenedChannels = mpsc::UnboundedReceiver<Opened>;

/// How often a settlement that Redis refuses for good is tried, before its lease is left to run out.
const REFUSALS: u32 = 5;
/// How many calls of one queue may be on their way: one of each script.
const CALLS: usize = 5;

/// Tells Redis how attempts ended: what ends in a queue while a call for it is on its way goes together
/// in the next one. A settlement is sent again until Redis answers; the other queues' do not wait.
pub(crate) struct Settler {
    pub(crate) shared: Arc<Shared>,
    pub(crate) connections: Arc<Connections>,
    pub(crate) opened: OpenedChannels,
    /// Ends it once everything that was sent before is settled.
    pub(crate) close: CancellationToken,
}

impl Settler {
    pub(crate) async fn run(self) {
        let Self {
            shared,
            connections,
            mut opened,
            close,
        } = self;
        let mut queues = FuturesUnordered::new();
        loop {
            tokio::select! {
                biased;
                Some((queue, ended)) = opened.recv() => {
                    let of_queue = OfQueue {
                        shared: &shared,
                        link: &connections.settle,
                        queue,
                    };
                    queues.push(of_queue.run(&close, ended));
                }
                Some(()) = queues.next() => {}
                () = close.cancelled() => break,
            }
        }
        while queues.next().await.is_some() {}
    }
}

/// Settles for one queue.
struct OfQueue<'a> {
    shared: &'a Shared,
    link: &'a Link,
    queue: Queue,
}

impl OfQueue<'_> {
    /// Until the queue's last attempt has ended, or it is told to end.
    async fn run(self, close: &CancellationToken, mut ended: mpsc::Receiver<EndedAttempt>) {
        let mut received = Vec::new();
        loop {
            tokio::select! {
                biased;
                () = close.cancelled(), if !ended.is_closed() => ended.close(),
                n = ended.recv_many(&mut received, SCRIPT_TASKS) => {
                    if n == 0 {
                        return;
                    }
                    let batches = batches(received.drain(..), |ended| &ended.settlement.how);
                    stream::iter(batches)
                        .for_each_concurrent(CALLS, |batch| self.settle(batch))
                        .await;
                }
            }
        }
    }

    /// Sends one batch until Redis answers; when it refuses the batch, one by one, because one of its
    /// tasks may spoil it for the others.
    async fn settle(&self, batch: Vec<EndedAttempt>) {
        if self.send(&batch, 1).await.is_ok() {
            return;
        }
        // All at once: where Redis refuses every one, the queue's next settlements wait for this.
        join_all(batch.into_iter().map(|single| async move {
            let single = [single];
            if let Err(error) = self.send(&single, REFUSALS).await {
                self.give_up(&single, &error);
            }
        }))
        .await;
    }

    /// Sends a batch until Redis answers, or has refused it for good `refusals` times.
    async fn send(&self, batch: &[EndedAttempt], refusals: u32) -> Result<(), BrokerError> {
        let settlements: Vec<_> = batch.iter().map(|ended| &ended.settlement).collect();
        let mut backoff = Backoff::new("settler");
        let mut repeats = false;
        let mut refused = 0;
        loop {
            match settle(self.link, &self.queue, By::Holder, &settlements).await {
                Ok(answers) => {
                    backoff.worked(self.shared);
                    self.answered(batch, &answers, repeats);
                    return Ok(());
                }
                Err(error) => {
                    repeats |= error.outcome_unknown();
                    refused += u32::from(error.fault() == Fault::Permanent);
                    if refused == refusals {
                        return Err(error);
                    }
                    backoff.wait(self.shared, &error).await;
                }
            }
        }
    }

    fn answered(&self, batch: &[EndedAttempt], answers: &[Settled], repeats: bool) {
        let shared = self.shared;
        shared
            .running
            .remove(batch.iter().map(|ended| &*ended.attempt));
        for (ended, answer) in batch.iter().zip(answers) {
            let (attempt, how) = (&ended.attempt, &ended.settlement.how);
            match answer {
                Settled::Done(became) => report::settled(shared, attempt.name(), how, *became),
                // The call before this one did it; only its answer was lost.
                Settled::Gone if repeats => {
                    report::settled(shared, attempt.name(), how, how.wanted());
                }
                Settled::Gone | Settled::Stale => {
                    log_limited!(
                        shared,
                        &*self.queue.name,
                        warn,
                        "the task's lease is no longer ours: how it ended is dropped",
                        task.id = &*attempt.leased.id,
                    );
                    self.refused(ended);
                }
            }
        }
    }

    /// Leaves tasks that cannot be settled to the recoverers: their leases run out.
    fn give_up(&self, batch: &[EndedAttempt], error: &BrokerError) {
        let shared = self.shared;
        shared
            .running
            .remove(batch.iter().map(|ended| &*ended.attempt));
        for ended in batch {
            log_limited!(
                shared,
                &*self.queue.name,
                error,
                "Redis refuses to settle the task; its lease will run out",
                task.id = &*ended.attempt.leased.id,
                error = error as &dyn std::error::Error,
            );
            self.refused(ended);
        }
    }

    fn refused(&self, ended: &EndedAttempt) {
        self.shared.counters.settles_refused.add(1);
        self.shared
            .observe(|| Event::settle_refused(ended.attempt.name()));
    }
}

/// On what ended attempts reach the settler: a channel for each queue, so that one whose settlements
/// wait holds up no other's.
pub(crate) struct SettleChannels {
    shared: Arc<Shared>,
    by_queue: Mutex<HashMap<Queue, mpsc::Sender<EndedAttempt>>>,
    opened: mpsc::UnboundedSender<Opened>,
}

impl SettleChannels {
    /// The channels, and what brings their receivers to the settler.
    pub(crate) fn new(shared: Arc<Shared>) -> (Self, OpenedChannels) {
        let (opened, receiver) = mpsc::unbounded_channel();
        let channels = Self {
            shared,
            by_queue: Mutex::default(),
            opened,
        };
        (channels, receiver)
    }

    /// The channel for a queue's attempts.
    pub(crate) fn of(&self, queue: &Queue) -> mpsc::Sender<EndedAttempt> {
        let mut by_queue = self.by_queue.lock();
        if let Some(sender) = by_queue.get(queue) {
            return sender.clone();
        }
        // Queues come and go: one that is no longer served is forgotten, and its channel ends with the
        // last of its attempts.
        let served = self.shared.queues.now();
        by_queue.retain(|known, _| served.iter().any(|served| served.queue == *known));
        // What ended and is not settled is bounded by this and the slots.
        let (sender, receiver) = mpsc::channel(self.shared.config.concurrency.max(256));
        // Fails only where the server was dropped, and then so does what is sent.
        let _ = self.opened.send((queue.clone(), receiver));
        by_queue.insert(queue.clone(), sender.clone());
        sender
    }
}
