use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::mpsc;

use crate::broker::{Queue, Settlement};
use crate::server::run::attempt::Attempt;
use crate::server::shared::Shared;

/// An attempt whose handler has ended, on its way to Redis.
pub(crate) struct EndedAttempt {
    pub(crate) attempt: Arc<Attempt>,
    pub(crate) settlement: Settlement,
}

/// A queue's ended attempts, for the settler.
pub(crate) type Opened = (Queue, mpsc::Receiver<EndedAttempt>);

/// On what ended attempts reach the settler: a channel for each queue, so that one whose settlements
/// wait holds up no other's.
pub(crate) struct SettleChannels {
    shared: Arc<Shared>,
    by_queue: Mutex<HashMap<Queue, mpsc::Sender<EndedAttempt>>>,
    opened: mpsc::UnboundedSender<Opened>,
}

impl SettleChannels {
    /// The channels, and what brings their receivers to the settler.
    pub(crate) fn new(shared: Arc<Shared>) -> (Self, mpsc::UnboundedReceiver<Opened>) {
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
