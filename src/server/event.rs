use std::time::Duration;

use crate::broker::BrokerError;

/// Something that an operator may want to count or be told of; see
/// [`ServerBuilder::on_event`](super::ServerBuilder::on_event).
#[derive(Debug)]
#[non_exhaustive]
pub enum Event<'a> {
    /// A try failed and will be repeated.
    Retried {
        /// The task's id.
        id: &'a str,
        /// Its kind.
        kind: &'a str,
        /// Its queue.
        queue: &'a str,
        /// Until the next try.
        delay: Duration,
        /// What it failed with.
        error: &'a str,
    },
    /// A task was given up.
    Archived {
        /// The task's id.
        id: &'a str,
        /// Its kind.
        kind: &'a str,
        /// Its queue.
        queue: &'a str,
        /// Why, as in the record's field `reason`.
        reason: &'a str,
        /// What it failed with last.
        error: &'a str,
    },
    /// The server lost the lease of a task that it was running.
    LeaseLost {
        /// The task's id.
        id: &'a str,
        /// Its queue.
        queue: &'a str,
    },
    /// Redis refused to settle a task, because its lease is not this server's any more.
    SettleRefused {
        /// The task's id.
        id: &'a str,
        /// Its queue.
        queue: &'a str,
    },
    /// A handler did not return when cancelled; it keeps its slot until it does.
    HandlerLeaked {
        /// The task's id.
        id: &'a str,
        /// Its kind.
        kind: &'a str,
    },
    /// A record that cannot be read was set aside.
    Malformed {
        /// The task's id.
        id: &'a str,
        /// Its queue.
        queue: &'a str,
    },
    /// A part of the server cannot reach Redis, or was refused by it.
    ConnectionLost {
        /// Which part.
        component: &'a str,
        /// What happened.
        error: &'a BrokerError,
    },
    /// That part works again.
    ConnectionRestored {
        /// Which part.
        component: &'a str,
        /// How long it did not.
        after: Duration,
    },
    /// The runtime that runs the handlers has not run for this long: some handler blocks it.
    RuntimeBlocked(Duration),
    /// A function of the user's panicked.
    CallbackPanicked(
        /// Which one.
        &'static str,
    ),
}
