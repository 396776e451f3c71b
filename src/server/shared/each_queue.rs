use std::collections::HashMap;
use std::time::Instant;

use futures::stream::{self, StreamExt};

use crate::broker::{BrokerError, Fault, Queue};
use crate::server::shared::Shared;
use crate::server::shared::backoff::Backoff;

/// How many queues have a call on its way at the same time.
pub(crate) const QUEUES_AT_ONCE: usize = 100;

/// What one component does for each queue. A queue that Redis refuses fails alone: it is tried again
/// after a pause of its own, and none of the others waits for it.
pub(crate) struct EachQueue {
    component: &'static str,
    failing: HashMap<Queue, Failing>,
}

struct Failing {
    backoff: Backoff,
    until: Instant,
}

impl EachQueue {
    pub(crate) fn new(component: &'static str) -> Self {
        Self {
            component,
            failing: HashMap::new(),
        }
    }

    /// Whether a queue's pause is over, if it has one.
    pub(crate) fn is_ready(&self, queue: &Queue) -> bool {
        let failing = self.failing.get(queue);
        failing.is_none_or(|failing| failing.until <= Instant::now())
    }

    /// When the next pause is over.
    pub(crate) fn next_ready(&self) -> Option<Instant> {
        self.failing.values().map(|failing| failing.until).min()
    }

    /// Does `work` for the queues whose pauses are over, many at a time.
    ///
    /// # Errors
    /// Redis cannot be reached: then the other queues are not tried.
    pub(crate) async fn run<'a, Fut: Future<Output = Result<(), BrokerError>>>(
        &mut self,
        shared: &Shared,
        queues: impl IntoIterator<Item = &'a Queue>,
        work: impl Fn(&'a Queue) -> Fut,
    ) -> Result<(), BrokerError> {
        let mut calls = Vec::new();
        for queue in queues {
            if self.is_ready(queue) {
                let call = work(queue);
                calls.push(async move { (queue, call.await) });
            }
        }
        let mut calls = stream::iter(calls).buffer_unordered(QUEUES_AT_ONCE);
        while let Some((queue, outcome)) = calls.next().await {
            self.note(shared, queue, outcome)?;
        }
        Ok(())
    }

    /// Notes how a call for one queue went; `None` where Redis refused it.
    ///
    /// # Errors
    /// Redis cannot be reached.
    pub(crate) fn note<T>(
        &mut self,
        shared: &Shared,
        queue: &Queue,
        outcome: Result<T, BrokerError>,
    ) -> Result<Option<T>, BrokerError> {
        match outcome {
            Ok(value) => {
                if let Some(mut failing) = self.failing.remove(queue) {
                    failing.backoff.worked(shared);
                }
                Ok(Some(value))
            }
            Err(error) if error.fault() == Fault::Reconnect => Err(error),
            Err(error) => {
                self.failed(shared, queue, &error);
                Ok(None)
            }
        }
    }

    fn failed(&mut self, shared: &Shared, queue: &Queue, error: &BrokerError) {
        if !self.failing.contains_key(queue) {
            // Those that are no longer served need no memory.
            let served = shared.queues.now();
            self.failing
                .retain(|known, _| served.iter().any(|served| served.queue == *known));
        }
        let failing = self
            .failing
            .entry(queue.clone())
            .or_insert_with(|| Failing {
                backoff: Backoff::of_queue(self.component, queue),
                until: Instant::now(),
            });
        failing.until = Instant::now() + failing.backoff.failed(shared, error);
    }
}
