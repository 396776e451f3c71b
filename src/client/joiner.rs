use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures::future::join_all;
use parking_lot::Mutex;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};

use super::batch::batch_len;
use super::{EnqueueError, Enqueued};
use crate::broker::{BrokerError, EnqueueItem, Keys, Link, Queue, enqueue, list_queues};
use crate::defaults;

/// Joins enqueues that happen at the same time: while a script call is on its way, the next ones
/// gather, and go together in the call after it.
pub(super) struct Joiner {
    link: Link,
    keys: Keys,
    /// How long an enqueue may wait for its turn behind a Redis that does not answer.
    patience: Duration,
    /// Bounds what gathers.
    places: Arc<Semaphore>,
    state: Mutex<State>,
}

/// How many enqueues may gather; more wait for a place.
const PLACES: usize = 20 * defaults::ENQUEUE_TASKS;

#[derive(Default)]
struct State {
    waiting: Vec<Waiting>,
    /// Somebody is sending, and will look at `waiting` again.
    sending: bool,
    /// Somebody is sending its own task and nothing else.
    leading: bool,
    /// The queues whose names were added to the set of queue names, and when.
    listed: HashMap<String, (Queue, Instant)>,
}

struct Waiting {
    item: EnqueueItem,
    since: Instant,
    answer: oneshot::Sender<Result<Enqueued, EnqueueError>>,
    /// Held here and not by the caller, who may give up while this still waits.
    _place: OwnedSemaphorePermit,
}

impl Joiner {
    pub(super) fn new(link: Link, keys: Keys, patience: Duration) -> Self {
        Self {
            link,
            keys,
            patience,
            places: Arc::new(Semaphore::new(PLACES)),
            state: Mutex::default(),
        }
    }

    pub(super) async fn connect(&self) -> Result<(), BrokerError> {
        self.link.connect().await
    }

    pub(super) async fn enqueue(
        self: &Arc<Self>,
        item: EnqueueItem,
    ) -> Result<Enqueued, EnqueueError> {
        match Lead::take(self) {
            Some(lead) => lead.send(&item).await,
            None => Box::pin(self.join(item)).await,
        }
    }

    /// Has the task sent together with others.
    async fn join(self: &Arc<Self>, item: EnqueueItem) -> Result<Enqueued, EnqueueError> {
        let id = item.id.clone();
        let since = Instant::now();
        let place = self.places.clone().acquire_owned();
        let Ok(Ok(place)) = tokio::time::timeout(self.patience, place).await else {
            return Err(EnqueueError::Refused(BrokerError::NotSent));
        };
        let (answer, answered) = oneshot::channel();
        self.hand_over(Waiting {
            item,
            since,
            answer,
            _place: place,
        });
        match answered.await {
            Ok(answer) => answer,
            // The runtime that was sending has shut down.
            Err(_) => Err(EnqueueError::OutcomeUnknown {
                id,
                source: BrokerError::disconnected("the sending runtime shut down"),
            }),
        }
    }

    fn hand_over(self: &Arc<Self>, waiting: Waiting) {
        let mut state = self.state.lock();
        state.waiting.push(waiting);
        if !std::mem::replace(&mut state.sending, true) {
            drop(state);
            // A task of its own, so that a caller that gives up does not leave the others waiting.
            tokio::spawn(Sender::new(self).run());
        }
    }

    /// The next call's tasks, oldest first, within its bounds.
    fn take_batch(&self) -> Vec<Waiting> {
        let mut state = self.state.lock();
        let fits = batch_len(state.waiting.iter().map(|waiting| &waiting.item));
        if fits == 0 {
            state.sending = false;
        }
        state.waiting.drain(..fits).collect()
    }

    async fn send(&self, batch: Vec<Waiting>) {
        let (batch, late): (Vec<_>, Vec<_>) = batch
            .into_iter()
            .partition(|waiting| waiting.since.elapsed() < self.patience);
        refuse(late, BrokerError::NotSent);
        if batch.is_empty() {
            return;
        }
        // Once for all queues: each of them on its own would wait for the connection anew.
        if let Err(error) = self.link.revive().await {
            return refuse(batch, error);
        }
        let mut by_queue: HashMap<String, Vec<Waiting>> = HashMap::new();
        for waiting in batch {
            by_queue
                .entry(waiting.item.options.queue().to_owned())
                .or_default()
                .push(waiting);
        }
        join_all(
            by_queue
                .into_iter()
                .map(|(queue, batch)| self.send_to(queue, batch)),
        )
        .await;
    }

    async fn send_to(&self, queue: String, batch: Vec<Waiting>) {
        let queue = match self.listed(&queue).await {
            Ok(queue) => queue,
            Err(error) => return refuse(batch, error),
        };
        let items = batch.iter().map(|waiting| &waiting.item);
        match enqueue(&self.link, &queue, items).await {
            Ok(answers) => {
                for (waiting, answer) in batch.into_iter().zip(answers) {
                    let answer = Enqueued::answered(&waiting.item, answer);
                    let _ = waiting.answer.send(Ok(answer));
                }
            }
            Err(error) => {
                for waiting in batch {
                    let answer = EnqueueError::from_broker(&error, &waiting.item.id);
                    let _ = waiting.answer.send(Err(answer));
                }
            }
        }
    }

    async fn send_one(&self, item: &EnqueueItem) -> Result<Enqueued, EnqueueError> {
        let queue = self.listed(item.options.queue()).await;
        let queue = queue.map_err(EnqueueError::Refused)?;
        match enqueue(&self.link, &queue, [item].into_iter()).await {
            Ok(mut answers) => Ok(Enqueued::answered(item, answers.remove(0))),
            Err(error) => Err(EnqueueError::from_broker(&error, &item.id)),
        }
    }

    /// A queue whose name is in the set of queue names.
    async fn listed(&self, name: &str) -> Result<Queue, BrokerError> {
        if let Some((queue, at)) = self.state.lock().listed.get(name)
            // Again as often as servers do, because the set may have been lost in between.
            && at.elapsed() < defaults::HEARTBEAT
        {
            return Ok(queue.clone());
        }
        list_queues(&self.link, &self.keys, [name].iter()).await?;
        let queue = self.keys.queue(name);
        let listed = (queue.clone(), Instant::now());
        self.state.lock().listed.insert(name.to_owned(), listed);
        Ok(queue)
    }
}

/// Answers those whose tasks were not sent.
fn refuse(batch: Vec<Waiting>, error: BrokerError) {
    for waiting in batch {
        // A receiver that is gone no longer wants the answer.
        let _ = waiting
            .answer
            .send(Err(EnqueueError::Refused(error.clone())));
    }
}

/// Sends until nothing waits. When its runtime shuts down under it, those who wait are told that
/// nothing was sent, those on their way that it is unknown, and the next enqueue starts another.
struct Sender {
    joiner: Arc<Joiner>,
    finished: bool,
}

impl Sender {
    fn new(joiner: &Arc<Joiner>) -> Self {
        Self {
            joiner: joiner.clone(),
            finished: false,
        }
    }

    async fn run(mut self) {
        loop {
            let batch = self.joiner.take_batch();
            if batch.is_empty() {
                self.finished = true;
                return;
            }
            self.joiner.send(batch).await;
        }
    }
}

impl Drop for Sender {
    fn drop(&mut self) {
        if !self.finished {
            let waiting = {
                let mut state = self.joiner.state.lock();
                state.sending = false;
                std::mem::take(&mut state.waiting)
            };
            refuse(waiting, BrokerError::NotSent);
        }
    }
}

/// A caller that sends its own task, here and now: to wake another task would take longer than all the
/// rest. Nobody waits for it: it may be dropped or not polled any more.
struct Lead<'a> {
    joiner: &'a Joiner,
    finished: bool,
}

impl<'a> Lead<'a> {
    /// When nobody is sending, and the connection can be used without a look at it.
    fn take(joiner: &'a Joiner) -> Option<Self> {
        let mut state = joiner.state.lock();
        if state.sending || state.leading || !joiner.link.is_trusted() {
            return None;
        }
        state.leading = true;
        Some(Self {
            joiner,
            finished: false,
        })
    }

    async fn send(mut self, item: &EnqueueItem) -> Result<Enqueued, EnqueueError> {
        let answer = self.joiner.send_one(item).await;
        self.finished = true;
        answer
    }
}

impl Drop for Lead<'_> {
    fn drop(&mut self) {
        self.joiner.state.lock().leading = false;
        if !self.finished {
            // A caller that gives up early may be the only one to know that no answer comes.
            self.joiner.link.doubt();
        }
    }
}
