use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::mpsc;

use crate::broker::Queue;
use crate::server::settle::settlement::Settlement;
use crate::server::shared::Shared;

/// A queue's settlements, for the settler.
pub(crate) type Opened = (Queue, mpsc::Receiver<Settlement>);

/// Where runs put their settlements: a channel for each queue, so that one whose settlements wait
/// holds up no other's.
pub(crate) struct Outbox {
    shared: Arc<Shared>,
    by_queue: Mutex<HashMap<Queue, mpsc::Sender<Settlement>>>,
    opened: mpsc::UnboundedSender<Opened>,
}

impl Outbox {
    /// An outbox, and what tells the settler of its channels.
    pub(crate) fn new(shared: Arc<Shared>) -> (Self, mpsc::UnboundedReceiver<Opened>) {
        let (opened, receiver) = mpsc::unbounded_channel();
        let outbox = Self {
            shared,
            by_queue: Mutex::default(),
            opened,
        };
        (outbox, receiver)
    }

    /// The channel for a queue's settlements.
    pub(crate) fn of(&self, queue: &Queue) -> mpsc::Sender<Settlement> {
        let mut by_queue = self.by_queue.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(sender) = by_queue.get(queue) {
            return sender.clone();
        }
        // Queues come and go: one that is served no longer is forgotten, and its channel ends with the
        // last of its runs.
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
