use std::collections::HashMap;
use std::time::Instant;

use parking_lot::Mutex;

use crate::broker::{BrokerError, Keys, Query, Queue, list_queues};
use crate::defaults;

/// How many queues are remembered.
const MOST: usize = 1_000;

/// The queues whose names were added to the set of queue names, and when.
pub(super) struct Listed {
    keys: Keys,
    queues: Mutex<HashMap<String, (Queue, Instant)>>,
}

impl Listed {
    pub(super) fn new(keys: Keys) -> Self {
        Self {
            keys,
            queues: Mutex::default(),
        }
    }

    /// A queue whose name was added so lately that it need not be added again. As often as servers do,
    /// because the set may have been lost in between.
    pub(super) fn get(&self, name: &str) -> Option<Queue> {
        let queues = self.queues.lock();
        let (queue, at) = queues.get(name)?;
        is_fresh(*at).then(|| queue.clone())
    }

    /// Adds a queue's name where that is due.
    pub(super) async fn add(&self, redis: &impl Query, name: &str) -> Result<Queue, BrokerError> {
        if let Some(queue) = self.get(name) {
            return Ok(queue);
        }
        list_queues(redis, &self.keys, [name].iter()).await?;
        let queue = self.keys.queue(name);
        let mut queues = self.queues.lock();
        if queues.len() >= MOST {
            queues.retain(|_, (_, at)| is_fresh(*at));
        }
        if queues.len() >= MOST {
            queues.clear();
        }
        queues.insert(name.to_owned(), (queue.clone(), Instant::now()));
        Ok(queue)
    }
}

fn is_fresh(at: Instant) -> bool {
    at.elapsed() < defaults::HEARTBEAT
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use redis::{Cmd, Value};

    use super::*;

    /// Counts what it is asked.
    #[derive(Default)]
    struct Asked(AtomicUsize);

    impl Query for Asked {
        async fn query(&self, _: &Cmd) -> Result<Value, BrokerError> {
            self.0.fetch_add(1, Ordering::Relaxed);
            Ok(Value::Int(1))
        }
    }

    #[tokio::test]
    async fn few_names_are_added_once_and_of_many_few_are_remembered() {
        let (redis, listed) = (Asked::default(), Listed::new(Keys::new("windlass")));
        let asked = || redis.0.load(Ordering::Relaxed);
        for round in 0..3 {
            for n in 0..MOST {
                let added = listed.add(&redis, &n.to_string()).await;
                added.expect("it has no errors");
            }
            assert_eq!(asked(), MOST, "round {round}");
        }
        for n in 0..5 * MOST {
            let queue = listed.add(&redis, &format!("tenant {n}")).await;
            assert_eq!(
                *queue.expect("it has no errors").name,
                format!("tenant {n}")
            );
            assert!(listed.queues.lock().len() <= MOST);
        }
        assert_eq!(asked(), 6 * MOST);
    }
}
