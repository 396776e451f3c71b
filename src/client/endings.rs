use std::collections::HashMap;
use std::sync::{Arc, Once};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::{broadcast, watch};

use crate::broker::{BrokerError, Endpoint, Queue, Subscription, pauses};
use crate::defaults::RECONNECT_CAP;

/// How long a listener that nobody uses stays.
const IDLE: Duration = Duration::from_secs(10);
/// How many endings a slow waiter may lag behind before it has to look for itself.
const BUFFER: usize = 1024;

/// Hears which tasks end: one subscription for each queue that somebody waits in, shared by all who
/// wait, and gone when nobody does.
pub(super) struct Endings {
    endpoint: Arc<Endpoint>,
    listeners: Mutex<HashMap<Arc<str>, Listener>>,
    denied: Once,
}

/// How one waiter hears.
#[derive(Clone)]
struct Listener {
    ended: broadcast::Sender<Arc<str>>,
    /// Grows with each subscription: what ended before may have been missed.
    subscribed: watch::Sender<u64>,
}

impl Listener {
    fn ears(&self) -> Ears {
        Ears {
            ended: self.ended.subscribe(),
            subscribed: self.subscribed.subscribe(),
        }
    }
}

/// A waiter's ears.
pub(super) struct Ears {
    pub(super) ended: broadcast::Receiver<Arc<str>>,
    pub(super) subscribed: watch::Receiver<u64>,
}

impl Endings {
    pub(super) fn new(endpoint: Arc<Endpoint>) -> Self {
        Self {
            endpoint,
            listeners: Mutex::default(),
            denied: Once::new(),
        }
    }

    /// Says once that waiters do without.
    fn tell_denied(&self, channel: &str) {
        self.denied.call_once(|| {
            tracing::warn!(
                channel,
                "the Redis user may not listen to the ends of tasks: who waits looks now and then; grant it \
                 +subscribe and the channel"
            );
        });
    }

    pub(super) fn listen(self: &Arc<Self>, queue: &Queue) -> Ears {
        let mut listeners = self.listeners.lock();
        if let Some(listener) = listeners.get(&queue.name) {
            return listener.ears();
        }
        let listener = Listener {
            ended: broadcast::Sender::new(BUFFER),
            subscribed: watch::Sender::new(0),
        };
        let ears = listener.ears();
        listeners.insert(queue.name.clone(), listener.clone());
        // A runtime that has shut down drops the guard at once, which then locks.
        drop(listeners);
        let guard = Guard {
            endings: self.clone(),
            queue: queue.clone(),
            listener,
        };
        tokio::spawn(guard.run());
        ears
    }
}

/// The task behind a listener; however it ends, its place is free for another one.
struct Guard {
    endings: Arc<Endings>,
    queue: Queue,
    listener: Listener,
}

impl Guard {
    async fn run(self) {
        let mut backoff = pauses();
        while self.is_used() {
            let channel = self.queue.ended();
            match Subscription::open(&self.endings.endpoint, &channel).await {
                Ok(mut messages) => {
                    backoff = pauses();
                    self.listener.subscribed.send_modify(|times| *times += 1);
                    while let Some(message) = messages.next_within(IDLE).await {
                        if let Some(id) = message {
                            // Nobody hears it: nobody waits.
                            let _ = self.listener.ended.send(id.into());
                        }
                        if !self.is_used() {
                            return;
                        }
                    }
                }
                Err(BrokerError::Denied(_)) => {
                    // Who waits looks by itself meanwhile.
                    self.endings.tell_denied(&channel);
                    tokio::time::sleep(IDLE).await;
                }
                Err(_) => {}
            }
            tokio::time::sleep(backoff.next().unwrap_or(RECONNECT_CAP)).await;
        }
    }

    /// Whether somebody waits; if not, the listener is given up in the same breath.
    fn is_used(&self) -> bool {
        let mut listeners = self.endings.listeners.lock();
        let used = self.listener.ended.receiver_count() > 0;
        if !used {
            listeners.remove(&self.queue.name);
        }
        used
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        let mut listeners = self.endings.listeners.lock();
        // Also with ears, because nobody tells them anything any more; but another one may have taken
        // the place after this one gave it up.
        if listeners
            .get(&self.queue.name)
            .is_some_and(|listener| listener.ended.same_channel(&self.listener.ended))
        {
            listeners.remove(&self.queue.name);
        }
    }
}
