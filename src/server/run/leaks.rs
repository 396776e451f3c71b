use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Instant;

use crate::broker::{LeasedId, Queue};
use crate::router::Slot;

/// Blocking handlers that were given up. What became of their tasks is another matter: after a
/// timeout they have moved on.
#[derive(Default)]
pub(crate) struct Leaks(Mutex<Vec<Leak>>);

#[derive(Clone)]
pub(crate) struct Leak {
    pub(crate) queue: Queue,
    pub(crate) leased: LeasedId,
    pub(crate) kind: Arc<str>,
    pub(crate) started: Instant,
    /// Held by the handler until it returns.
    pub(crate) slot: Weak<dyn Slot>,
}

impl Leaks {
    pub(crate) fn add(&self, leak: Leak) {
        let mut leaks = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        leaks.retain(Leak::runs);
        leaks.push(leak);
    }

    /// Those that still run.
    pub(crate) fn list(&self) -> Vec<Leak> {
        let leaks = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        leaks.iter().filter(|leak| leak.runs()).cloned().collect()
    }
}

impl Leak {
    fn runs(&self) -> bool {
        self.slot.strong_count() > 0
    }
}
