use std::collections::VecDeque;
use std::time::{Duration, Instant};

use tokio::sync::{OwnedSemaphorePermit, oneshot};

use crate::broker::{BrokerError, EnqueueItem, batch_len};
use crate::client::error::EnqueueError;
use crate::client::outcome::Enqueued;

/// How long a sender may make no progress before another one is put beside it.
pub(super) const STALL: Duration = Duration::from_millis(500);

/// The enqueues that wait for the next call, and who is to send them.
#[derive(Default)]
pub(super) struct Line {
    waiting: VecDeque<Waiting>,
    /// How many have been taken.
    taken: u64,
    /// The sender that will look again, and when it last did.
    sender: Option<(SenderId, Instant)>,
    senders: u64,
    /// A caller is sending its own task and nothing else.
    pub(super) is_led: bool,
}

/// Senders in the order in which they were made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct SenderId(u64);

/// A place in the line.
#[derive(Clone, Copy)]
pub(super) struct Ticket(u64);

pub(super) struct Waiting {
    pub(super) item: EnqueueItem,
    pub(super) answer: oneshot::Sender<Result<Enqueued, EnqueueError>>,
    /// Held here and not by the caller, who may give up while this still waits.
    pub(super) _place: OwnedSemaphorePermit,
}

impl Line {
    pub(super) fn join(&mut self, waiting: Waiting) -> Ticket {
        self.waiting.push_back(waiting);
        Ticket(self.taken + self.waiting.len() as u64)
    }

    /// Whether it is still in the line, so that nothing of it was sent.
    pub(super) fn waits(&self, ticket: Ticket) -> bool {
        ticket.0 > self.taken
    }

    pub(super) fn is_sent(&self) -> bool {
        self.sender.is_some()
    }

    /// A new sender, where there is none, or one that stands still: its runtime's thread may be blocked.
    pub(super) fn new_sender(&mut self) -> Option<SenderId> {
        if self
            .sender
            .is_some_and(|(_, looked)| looked.elapsed() < STALL)
        {
            return None;
        }
        self.senders += 1;
        let sender = SenderId(self.senders);
        self.sender = Some((sender, Instant::now()));
        Some(sender)
    }

    /// What the sender is to send next, oldest first, within the bounds of a call. Nothing where it has
    /// nothing more to do: no one waits, or another one has taken its place.
    pub(super) fn take(&mut self, sender: SenderId) -> Vec<Waiting> {
        if !self.is_in_charge(sender) {
            return Vec::new();
        }
        loop {
            let fits = batch_len(self.waiting.iter().map(|waiting| &waiting.item));
            self.sender = (fits > 0).then(|| (sender, Instant::now()));
            self.taken += fits as u64;
            let mut batch: Vec<_> = self.waiting.drain(..fits).collect();
            // Whoever gave up was told that it was not sent.
            batch.retain(|waiting| !waiting.answer.is_closed());
            if fits == 0 || !batch.is_empty() {
                return batch;
            }
        }
    }

    /// All who wait for a sender that has ended before its time.
    pub(super) fn end(&mut self, sender: SenderId) -> Vec<Waiting> {
        if !self.is_in_charge(sender) {
            return Vec::new();
        }
        self.sender = None;
        self.taken += self.waiting.len() as u64;
        self.waiting.drain(..).collect()
    }

    fn is_in_charge(&self, sender: SenderId) -> bool {
        self.sender
            .is_some_and(|(in_charge, _)| in_charge == sender)
    }
}

/// Answers those whose tasks were not sent.
pub(super) fn refuse(batch: Vec<Waiting>, error: &BrokerError) {
    for waiting in batch {
        // A receiver that is gone no longer wants the answer.
        let _ = waiting
            .answer
            .send(Err(EnqueueError::Refused(error.clone())));
    }
}
