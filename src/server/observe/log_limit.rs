use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Lets one message a second through, for the whole server, and counts the others: a Redis that is
/// away is the same news for every component.
#[derive(Default)]
pub(crate) struct LogLimit(Mutex<State>);

#[derive(Default)]
struct State {
    last: Option<Instant>,
    suppressed: u64,
}

impl LogLimit {
    /// How many messages were held back since the last one, if this one may be logged.
    pub(crate) fn pass(&self) -> Option<u64> {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if state
            .last
            .is_some_and(|last| last.elapsed() < Duration::from_secs(1))
        {
            state.suppressed += 1;
            return None;
        }
        state.last = Some(Instant::now());
        Some(std::mem::take(&mut state.suppressed))
    }
}
