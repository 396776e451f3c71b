use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use futures::future::join_all;
use parking_lot::Mutex;
use tokio::sync::{Semaphore, oneshot};
use tokio::time::{Instant, timeout_at};

use crate::broker::{BrokerError, Endpoint, EnqueueItem, Keys, Link, Queue, enqueue};
use crate::client::error::EnqueueError;
use crate::client::outcome::Enqueued;
use crate::client::send::line::{Line, STALL, SenderId, Ticket, Waiting, refuse};
use crate::client::send::listed::Listed;
use crate::defaults;

/// Joins enqueues that happen at the same time: while a script call is on its way, the next ones
/// gather, and go together in the call after it.
pub(in crate::client) struct Joiner {
    link: Link,
    /// How long an enqueue may take.
    limit: Duration,
    /// Bounds what gathers.
    places: Arc<Semaphore>,
    line: Mutex<Line>,
    listed: Listed,
}

/// How many enqueues may gather; more wait for a place.
const PLACES: usize = 20 * defaults::ENQUEUE_TASKS;

impl Joiner {
    pub(in crate::client) fn new(endpoint: Arc<Endpoint>, keys: Keys) -> Self {
        Self {
            limit: endpoint.connect_timeout() + endpoint.command_timeout(),
            link: Link::new(endpoint),
            places: Arc::new(Semaphore::new(PLACES)),
            line: Mutex::default(),
            listed: Listed::new(keys),
        }
    }

    pub(in crate::client) async fn connect(&self) -> Result<(), BrokerError> {
        self.link.reach().await
    }

    pub(in crate::client) async fn enqueue(
        self: &Arc<Self>,
        item: EnqueueItem,
    ) -> Result<Enqueued, EnqueueError> {
        match Lead::take(self, &item) {
            Some(lead) => lead.send(&item).await,
            None => Box::pin(self.join(item)).await,
        }
    }

    /// Has the task sent together with others. Waits for its limit at most, whoever sends.
    async fn join(self: &Arc<Self>, item: EnqueueItem) -> Result<Enqueued, EnqueueError> {
        let until = Instant::now() + self.limit;
        let id = item.id.clone();
        let place = self.places.clone().acquire_owned();
        let Ok(Ok(place)) = timeout_at(until, place).await else {
            return Err(EnqueueError::Refused(BrokerError::Busy(self.limit)));
        };
        let (answer, mut answered) = oneshot::channel();
        let waiting = Waiting {
            item,
            answer,
            _place: place,
        };
        let ticket = self.line.lock().join(waiting);
        loop {
            self.see_it_sent(ticket);
            let next_look = until.min(Instant::now() + STALL);
            let unknown = match timeout_at(next_look, &mut answered).await {
                Ok(Ok(answer)) => return answer,
                Ok(Err(_)) => BrokerError::disconnected("the sending runtime shut down"),
                Err(_) if Instant::now() < until => continue,
                Err(_) => {
                    let line = self.line.lock();
                    // In time, or else nobody sends it any more.
                    answered.close();
                    if line.waits(ticket) {
                        return Err(EnqueueError::Refused(BrokerError::NotSent));
                    }
                    BrokerError::Timeout(self.limit)
                }
            };
            return Err(EnqueueError::OutcomeUnknown {
                id,
                source: unknown,
            });
        }
    }

    /// Makes sure that somebody sends what waits.
    fn see_it_sent(self: &Arc<Self>, ticket: Ticket) {
        let mut line = self.line.lock();
        if let Some(id) = line.waits(ticket).then(|| line.new_sender()).flatten() {
            drop(line);
            let joiner = self.clone();
            // A task of its own, so that a caller that gives up does not leave the others waiting.
            tokio::spawn(Sender { joiner, id }.run());
        }
    }

    async fn send(&self, batch: Vec<Waiting>) {
        // Once for all queues: each of them on its own would wait for the connection anew.
        if let Err(error) = self.link.ready().await {
            return refuse(batch, &error);
        }
        let mut by_queue: HashMap<String, Vec<Waiting>> = HashMap::new();
        for waiting in batch {
            by_queue
                .entry(waiting.item.options.queue().to_owned())
                .or_default()
                .push(waiting);
        }
        let calls = by_queue.into_iter();
        join_all(calls.map(|(queue, batch)| self.send_to(queue, batch))).await;
    }

    async fn send_to(&self, queue: String, batch: Vec<Waiting>) {
        let queue = match self.listed.add(&self.link, &queue).await {
            Ok(queue) => queue,
            Err(error) => return refuse(batch, &error),
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
}

/// Sends until nothing waits. When its runtime shuts down under it, those who wait are told that
/// nothing was sent, those on their way that it is unknown, and the next enqueue starts another.
struct Sender {
    joiner: Arc<Joiner>,
    id: SenderId,
}

impl Sender {
    async fn run(self) {
        loop {
            let batch = self.joiner.line.lock().take(self.id);
            if batch.is_empty() {
                return;
            }
            self.joiner.send(batch).await;
        }
    }
}

impl Drop for Sender {
    fn drop(&mut self) {
        let waiting = self.joiner.line.lock().end(self.id);
        refuse(waiting, &BrokerError::NotSent);
    }
}

/// A caller that sends its own task, here and now: to wake another task would take longer than all the
/// rest. Nobody waits for it: it may be dropped or not polled any more.
struct Lead<'a> {
    joiner: &'a Joiner,
    queue: Queue,
    finished: bool,
}

impl<'a> Lead<'a> {
    /// When nobody is sending, and one command on a connection that need not be looked at is all that
    /// it takes.
    fn take(joiner: &'a Joiner, item: &EnqueueItem) -> Option<Self> {
        let queue = joiner.listed.get(item.options.queue())?;
        let mut line = joiner.line.lock();
        if line.is_sent() || line.is_led || !joiner.link.is_trusted() {
            return None;
        }
        line.is_led = true;
        Some(Self {
            joiner,
            queue,
            finished: false,
        })
    }

    async fn send(mut self, item: &EnqueueItem) -> Result<Enqueued, EnqueueError> {
        let answer = enqueue(&self.joiner.link, &self.queue, [item].into_iter()).await;
        self.finished = true;
        match answer {
            Ok(mut answers) => Ok(Enqueued::answered(item, answers.remove(0))),
            Err(error) => Err(EnqueueError::from_broker(&error, &item.id)),
        }
    }
}

impl Drop for Lead<'_> {
    fn drop(&mut self) {
        self.joiner.line.lock().is_led = false;
        if !self.finished {
            // A caller that gives up early may be the only one to know that no answer comes.
            self.joiner.link.doubt();
        }
    }
}
