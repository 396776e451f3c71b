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

    /// Says how many were held back of the messages that have not come since, and forgets them.
    pub(crate) fn tell_suppressed(&self, server: &str) {
        Self::tell(server, self.older_than(PAUSE));
    }

    /// Says how many were held back of all messages: of a server that ends, so that the numbers in the log add up.
    pub(crate) fn tell_all_suppressed(&self, server: &str) {
        Self::tell(server, self.older_than(Duration::ZERO));
    }

    fn tell(server: &str, held_back: Vec<(Key, u64)>) {
        for ((message, queue), suppressed) in held_back {
            tracing::info!(
                server.id = server,
                queue = &*queue,
                suppressed,
                "held back since it was last logged: {message}"
            );
        }
    }

    /// Forgets the messages that were last logged so long ago. Returns those of which some were held back.
    fn older_than(&self, age: Duration) -> Vec<(Key, u64)> {
        let mut states = self.0.lock();
        let over = states.extract_if(|_, state| state.last.elapsed() >= age);
        let over = over.map(|(key, state)| (key, state.suppressed));
        over.filter(|(_, suppressed)| *suppressed > 0).collect()
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

    /// Makes it seem as if this message had been logged a while ago.
    fn age(limit: &LogLimit, message: &'static str, queue: &str) {
        let mut states = limit.0.lock();
        let state = states.get_mut(&(message, queue.into()));
        state.expect("it was logged").last -= PAUSE;
    }

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
        age(&limit, "a", "q");
        assert_eq!(limit.pass("a", "q"), Some(2));
    }

    #[test]
    fn what_was_held_back_last_is_told_once() {
        let limit = LogLimit::default();
        for (message, times) in [("some", 3), ("one", 1), ("now", 3)] {
            for _ in 0..times {
                limit.pass(message, "q");
            }
        }
        age(&limit, "some", "q");
        age(&limit, "one", "q");
        assert_eq!(limit.older_than(PAUSE), [(("some", "q".into()), 2)]);
        assert_eq!(limit.older_than(PAUSE), []);
        assert_eq!(limit.pass("some", "q"), Some(0));
        let at_the_end = limit.older_than(Duration::ZERO);
        assert_eq!(at_the_end, [(("now", "q".into()), 2)]);
    }
}
