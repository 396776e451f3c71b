use std::collections::HashMap;
use std::sync::Arc;

use crate::broker::{
    BrokerError, EnqueueItem, Fault, Keys, Pools, batch_len, enqueue, list_queues,
};
use crate::client::error::EnqueueError;
use crate::client::outcome::Enqueued;
use crate::task::InvalidTask;

/// Enqueues lists of tasks, on connections of its own, so that they do not hold up single enqueues.
pub(in crate::client) struct Bulk {
    pools: Arc<Pools>,
    keys: Keys,
}

impl Bulk {
    pub(in crate::client) fn new(pools: Arc<Pools>, keys: Keys) -> Self {
        Self { pools, keys }
    }

    /// One result for each item, in order.
    pub(in crate::client) async fn enqueue(
        &self,
        items: Vec<Result<EnqueueItem, InvalidTask>>,
    ) -> Vec<Result<Enqueued, EnqueueError>> {
        let mut results = Vec::with_capacity(items.len());
        let mut by_queue: HashMap<String, Vec<(usize, EnqueueItem)>> = HashMap::new();
        for (place, item) in items.into_iter().enumerate() {
            match item {
                Ok(item) => {
                    let queue = item.options.queue().to_owned();
                    // Overwritten below; stands if a queue before this one fails.
                    results.push(Err(EnqueueError::Refused(BrokerError::NotSent)));
                    by_queue.entry(queue).or_default().push((place, item));
                }
                Err(error) => results.push(Err(error.into())),
            }
        }
        let mut failed = None;
        for (queue, items) in by_queue {
            if let Some(error) = &failed {
                refuse(&items, error, &mut results);
            } else {
                let sent = self.enqueue_to(&queue, items, &mut results).await;
                // What is wrong with one queue for good need not be wrong with the next.
                failed = sent.err().filter(|error| error.fault() != Fault::Permanent);
            }
        }
        results
    }

    /// Sends one queue's items. After a failure nothing more is sent, so that a Redis that is away
    /// costs one timeout and not one for each call.
    async fn enqueue_to(
        &self,
        queue: &str,
        items: Vec<(usize, EnqueueItem)>,
        results: &mut [Result<Enqueued, EnqueueError>],
    ) -> Result<(), BrokerError> {
        if let Err(error) = list_queues(&*self.pools, &self.keys, [queue].iter()).await {
            refuse(&items, &error, results);
            return Err(error);
        }
        let queue = self.keys.queue(queue);
        let mut rest = items.as_slice();
        while !rest.is_empty() {
            let (batch, after) = rest.split_at(batch_len(rest.iter().map(|(_, item)| item)));
            match enqueue(&*self.pools, &queue, batch.iter().map(|(_, item)| item)).await {
                Ok(answers) => {
                    for ((place, item), answer) in batch.iter().zip(answers) {
                        results[*place] = Ok(Enqueued::answered(item, answer));
                    }
                }
                Err(error) => {
                    for (place, item) in batch {
                        results[*place] = Err(EnqueueError::from_broker(&error, &item.id));
                    }
                    refuse(after, &error, results);
                    return Err(error);
                }
            }
            rest = after;
        }
        Ok(())
    }
}

fn refuse(
    items: &[(usize, EnqueueItem)],
    error: &BrokerError,
    results: &mut [Result<Enqueued, EnqueueError>],
) {
    for (place, _) in items {
        results[*place] = Err(EnqueueError::Refused(error.clone()));
    }
}
