use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Instant;

use crate::broker::{LeasedId, Queue};
use crate::router::Slot;

/// Blocking handlers that were given up. What became of their tasks is another matter: after a
/// timeout they have moved on.
#[derive(Default)]
pub(super) struct Leaks(Mutex<Vec<Leak>>);

#[derive(Clone)]
pub(super) struct Leak {
    pub(super) queue: Queue,
    pub(super) leased: LeasedId,
    pub(super) kind: Arc<str>,
    pub(super) started: Instant,
    /// Held by the handler until it returns.
    pub(super) slot: Weak<dyn Slot>,
}

impl Leaks {
    pub(super) fn add(&self, leak: Leak) {
        let mut leaks = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        leaks.retain(Leak::runs);
        leaks.push(leak);
    }

    /// Those that still run.
    pub(super) fn list(&self) -> Vec<Leak> {
        let leaks = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        leaks.iter().filter(|leak| leak.runs()).cloned().collect()
    }
}

impl Leak {
    fn runs(&self) -> bool {
        self.slot.strong_count() > 0
    }
}
