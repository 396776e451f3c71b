use std::sync::{Arc, Weak};

use parking_lot::Mutex;

use crate::router::Slot;
use crate::server::shared::attempt::Attempt;

/// The blocking handlers that were given up and still run. What became of their tasks is another
/// matter: after a timeout they have moved on.
#[derive(Default)]
pub(crate) struct Leaks(Mutex<Vec<Leak>>);

/// An attempt that was given up, and its slot, which its handler holds until it returns.
type Leak = (Arc<Attempt>, Weak<dyn Slot>);

fn runs((_, slot): &Leak) -> bool {
    slot.strong_count() > 0
}

impl Leaks {
    pub(crate) fn add(&self, attempt: Arc<Attempt>, slot: Weak<dyn Slot>) {
        let mut leaks = self.0.lock();
        leaks.retain(runs);
        leaks.push((attempt, slot));
    }

    /// Those that still run.
    pub(crate) fn list(&self) -> Vec<Arc<Attempt>> {
        let leaks = self.0.lock();
        let leaks = leaks.iter().filter(|leak| runs(leak));
        leaks.map(|(attempt, _)| attempt.clone()).collect()
    }

    pub(crate) fn count(&self) -> usize {
        self.0.lock().iter().filter(|leak| runs(leak)).count()
    }
}
