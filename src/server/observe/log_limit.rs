use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;

/// How often one message of one queue may be logged.
const PAUSE: Duration = Duration::from_secs(1);

/// Lets each message through once a second for each queue, and counts those that it holds back. Trouble
/// with Redis is one message for all components and queues.
#[derive(Default)]
pub(crate) struct LogLimit(Mutex<HashMap<Key, State>>);

/// A message and the queue that it is about; empty where it is about none.
type Key = (&'static str, Arc<str>);

struct State {
    last: Instant,
    suppressed: u64,
}

impl LogLimit {
    /// How many of these messages were held back since the last one, if this one may be logged.
    pub(crate) fn pass(&self, message: &'static str, queue: &str) -> Option<u64> {
        let mut states = self.0.lock();
        let key = (message, Arc::from(queue));
        let Some(state) = states.get_mut(&key) else {
            let (last, suppressed) = (Instant::now(), 0);
            states.insert(key, State { last, suppressed });
            return Some(0);
        };
        if state.last.elapsed() < PAUSE {
            state.suppressed += 1;
            return None;
        }
        state.last = Instant::now();
        Some(std::mem::take(&mut state.suppressed))
    }

    /// Says of which messages some were held back and none has come since. Forgets the others.
    pub(crate) fn tell_suppressed(&self, server: &str) {
        let mut over = Vec::new();
        self.0.lock().retain(|(message, queue), state| {
            let is_over = state.last.elapsed() >= PAUSE;
            if is_over && state.suppressed > 0 {
                over.push((*message, queue.clone(), state.suppressed));
            }
            !is_over
        });
        for (message, queue, suppressed) in over {
            tracing::info!(
                server.id = server,
                queue = &*queue,
                suppressed,
                "held back since it was last logged: {message}"
            );
        }
    }
}

/// Logs a message with the fields of a `tracing` macro, within the server's limit: at this level, of this
/// queue, or of none where that is empty.
macro_rules! log_limited {
    ($shared:expr, $queue:expr, $level:ident, $message:literal $(, $($field:tt)+)?) => {{
        let queue: &str = $queue;
        if let Some(suppressed) = $shared.log_limit.pass($message, queue) {
            tracing::$level!(
                server.id = &*$shared.id,
                queue = (!queue.is_empty()).then_some(queue),
                suppressed,
                message = $message,
                $($($field)+)?
            );
        }
    }};
}
pub(crate) use log_limited;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_and_queues_do_not_hold_each_other_back() {
        let limit = LogLimit::default();
        for (message, queue, passes) in [
            ("a", "q", Some(0)),
            ("a", "q", None),
            ("a", "r", Some(0)),
            ("b", "q", Some(0)),
            ("a", "q", None),
        ] {
            assert_eq!(limit.pass(message, queue), passes, "{message} {queue}");
        }
        let mut states = limit.0.lock();
        let state = states.get_mut(&("a", "q".into())).expect("it was logged");
        state.last -= PAUSE;
        drop(states);
        assert_eq!(limit.pass("a", "q"), Some(2));
    }
}
