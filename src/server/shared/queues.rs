use std::sync::Arc;

use parking_lot::RwLock;
use tokio::sync::Notify;

use crate::broker::Queue;

/// A queue that a server serves.
#[derive(Debug, Clone)]
pub(crate) struct ServedQueue {
    pub(crate) queue: Queue,
    pub(crate) weight: u32,
}

impl ServedQueue {
    /// One of a server that claims nothing.
    pub(crate) fn unweighted(queue: Queue) -> Self {
        Self { queue, weight: 1 }
    }
}

/// The queues that a server serves, which may change while it runs.
#[derive(Debug)]
pub(crate) struct Queues {
    list: RwLock<Arc<[ServedQueue]>>,
    changed: Notify,
}

impl Queues {
    pub(crate) fn new(queues: Vec<ServedQueue>) -> Self {
        Self {
            list: RwLock::new(queues.into()),
            changed: Notify::new(),
        }
    }

    pub(crate) fn now(&self) -> Arc<[ServedQueue]> {
        self.list.read().clone()
    }

    /// Replaces the list by what `change` makes of it; `None` keeps it.
    pub(crate) fn change(
        &self,
        change: impl FnOnce(&[ServedQueue]) -> Option<Vec<ServedQueue>>,
    ) -> bool {
        let mut queues = self.list.write();
        let Some(changed) = change(&queues) else {
            return false;
        };
        *queues = changed.into();
        self.changed.notify_one();
        true
    }

    /// Returns once the list has changed since the last call. For one caller, the claimer.
    pub(crate) async fn changed(&self) {
        self.changed.notified().await;
    }
}
