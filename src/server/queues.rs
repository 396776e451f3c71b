use std::sync::{Arc, PoisonError, RwLock};

use crate::broker::Queue;

/// A queue that a server serves.
#[derive(Debug, Clone)]
pub(super) struct ServedQueue {
    pub(super) queue: Queue,
    pub(super) weight: u32,
}

/// The queues that a server serves, which may change while it runs.
#[derive(Debug)]
pub(super) struct Queues(RwLock<Arc<[ServedQueue]>>);

impl Queues {
    pub(super) fn new(queues: Vec<ServedQueue>) -> Self {
        Self(RwLock::new(queues.into()))
    }

    pub(super) fn now(&self) -> Arc<[ServedQueue]> {
        self.0
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    /// Replaces the list by what `change` makes of it; `None` keeps it.
    pub(super) fn change(
        &self,
        change: impl FnOnce(&[ServedQueue]) -> Option<Vec<ServedQueue>>,
    ) -> bool {
        let mut queues = self.0.write().unwrap_or_else(PoisonError::into_inner);
        let Some(changed) = change(&queues) else {
            return false;
        };
        *queues = changed.into();
        true
    }
}
