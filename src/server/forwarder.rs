use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::Notify;

use super::connections::Connections;
use super::patience::Patience;
use super::shared::Shared;
use crate::broker::{BrokerError, Queue, expire, promote};

/// When each queue's next scheduled or retried task is due, as far as this server has heard.
#[derive(Default)]
pub(super) struct DueTimes {
    times: Mutex<HashMap<Queue, Instant>>,
    earlier: Notify,
}

impl DueTimes {
    /// A task of the queue is due in this long.
    pub(super) fn hint(&self, queue: &Queue, due_in: Duration) {
        let Some(due) = Instant::now().checked_add(due_in) else {
            return;
        };
        let mut times = self.times.lock().unwrap_or_else(PoisonError::into_inner);
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

    /// The queue that is due first. It is forgotten once it is due: who promotes it hints again.
    fn next(&self) -> Option<(Queue, Instant)> {
        let mut times = self.times.lock().unwrap_or_else(PoisonError::into_inner);
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

/// Makes scheduled and retried tasks pending when they are due: sleeps until the next due time, and
/// looks again when it hears of an earlier one.
pub(super) struct Forwarder {
    pub(super) shared: Arc<Shared>,
    pub(super) connections: Arc<Connections>,
}

impl Forwarder {
    pub(super) async fn run(self) {
        // One for each queue: what fails for one works for another in between.
        let mut patience: HashMap<Queue, Patience> = HashMap::new();
        loop {
            let earlier = self.shared.due.earlier.notified();
            match self.shared.due.next() {
                None => earlier.await,
                Some((queue, due)) if due <= Instant::now() => {
                    let promoted = self.promote(&queue).await;
                    let patience = patience
                        .entry(queue.clone())
                        .or_insert_with(|| Patience::new("forwarder"));
                    match promoted {
                        Ok(()) => patience.worked(&self.shared),
                        Err(error) => {
                            let pause = patience.failed(&self.shared, &error);
                            self.shared.due.hint(&queue, pause);
                        }
                    }
                }
                Some((_, due)) => {
                    tokio::select! {
                        () = earlier => {}
                        () = tokio::time::sleep_until(due.into()) => {}
                    }
                }
            }
        }
    }

    async fn promote(&self, queue: &Queue) -> Result<(), BrokerError> {
        loop {
            let promoted = promote(&self.connections.pool, queue).await?;
            tracing::debug!(
                queue = &*queue.name,
                moved = promoted.moved,
                "promoted due tasks"
            );
            self.shared.malformed(&queue.name, &promoted.malformed);
            if promoted.deadlines_passed {
                self.expire(queue).await?;
            }
            if promoted.more {
                continue;
            }
            if let Some(due_in) = promoted.next_due {
                // Redis counts whole ms: a millisecond that is not over yet is not due.
                self.shared
                    .due
                    .hint(queue, due_in.max(Duration::from_millis(1)));
            }
            return Ok(());
        }
    }

    /// Archives what is past its deadline, also while the queue is paused.
    async fn expire(&self, queue: &Queue) -> Result<(), BrokerError> {
        loop {
            let expired = expire(&self.connections.pool, queue).await?;
            self.shared.malformed(&queue.name, &expired.malformed);
            self.shared.counters.archived.add(expired.archived.len());
            if !expired.archived.is_empty() {
                tracing::info!(queue = &*queue.name, tasks = ?expired.archived, "archived tasks past their deadline");
                self.shared.hooks_owed.notify();
            }
            if !expired.more {
                return Ok(());
            }
        }
    }
}
