use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::broker::{BrokerError, Queue, expire, promote};
use crate::server::settle::report;
use crate::server::shared::Shared;
use crate::server::shared::backoff::Backoff;
use crate::server::shared::connections::Connections;

/// Makes scheduled and retried tasks pending when they are due: sleeps until the next due time, and
/// looks again when it hears of an earlier one.
pub(crate) struct Forwarder {
    pub(crate) shared: Arc<Shared>,
    pub(crate) connections: Arc<Connections>,
}

impl Forwarder {
    pub(crate) async fn run(self) {
        // Each queue by itself: what fails for one works for another in between. A queue leaves when it works
        // again, and until then it is tried.
        let mut failing: HashMap<Queue, Backoff> = HashMap::new();
        loop {
            let earlier = self.shared.due.earlier();
            match self.shared.due.next() {
                None => earlier.await,
                Some((queue, due)) if due <= Instant::now() => {
                    let promoted = self.promote(&queue).await;
                    match promoted {
                        Ok(()) => {
                            if let Some(mut failing) = failing.remove(&queue) {
                                failing.worked(&self.shared);
                            }
                        }
                        Err(error) => {
                            let new = || Backoff::new("forwarder");
                            let backoff = failing.entry(queue.clone()).or_insert_with(new);
                            let pause = backoff.failed(&self.shared, &error);
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
            report::expired(&self.shared, queue, &expired.archived);
            if !expired.more {
                return Ok(());
            }
        }
    }
}
