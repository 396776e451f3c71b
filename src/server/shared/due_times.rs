use std::collections::HashMap;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::sync::futures::Notified;

use crate::broker::Queue;

/// When each queue's next scheduled or retried task is due, as far as this server has heard.
#[derive(Default)]
pub(crate) struct DueTimes {
    times: Mutex<HashMap<Queue, Instant>>,
    earlier: Notify,
}

impl DueTimes {
    /// A task of the queue is due in this long.
    pub(crate) fn hint(&self, queue: &Queue, due_in: Duration) {
        let Some(due) = Instant::now().checked_add(due_in) else {
            return;
        };
        let mut times = self.times.lock();
        match times.get_mut(queue) {
            Some(known) if *known <= due => return,
            Some(known) => *known = due,
            None => {
                times.insert(queue.clone(), due);
            }
        }
        drop(times);
        self.earlier.notify_one();
    }

    /// Resolves once a task is due earlier than all that were known.
    pub(crate) fn earlier(&self) -> Notified<'_> {
        self.earlier.notified()
    }

    /// The queue that is due first. It is forgotten once it is due: who promotes it hints again.
    pub(crate) fn next(&self) -> Option<(Queue, Instant)> {
        let mut times = self.times.lock();
        let (queue, due) = times
            .iter()
            .min_by_key(|(_, due)| **due)
            .map(|(q, d)| (q.clone(), *d))?;
        if due <= Instant::now() {
            times.remove(&queue);
        }
        Some((queue, due))
    }
}
