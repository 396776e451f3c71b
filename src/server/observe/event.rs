use std::time::Duration;

use tracing::Span;

use crate::broker::ArchiveReason;

/// Something that an operator may want to count or be told of; see
/// [`ServerBuilder::on_event`](crate::server::ServerBuilder::on_event).
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum Event {
    /// An attempt failed, or lost its lease, and will be repeated.
    Retried {
        /// The task's id.
        id: String,
        /// Its kind.
        kind: String,
        /// Its queue.
        queue: String,
        /// Until the next attempt.
        delay: Duration,
        /// What it failed with.
        error: String,
    },
    /// A task was given up.
    Archived {
        /// The task's id.
        id: String,
        /// Its kind.
        kind: String,
        /// Its queue.
        queue: String,
        /// Why.
        reason: ArchiveReason,
        /// What it failed with last; empty where it had not run.
        error: String,
    },
    /// A running task was deleted, because somebody had cancelled it so, and its handler did not decide
    /// otherwise.
    Deleted {
        /// The task's id.
        id: String,
        /// Its kind.
        kind: String,
        /// Its queue.
        queue: String,
    },
    /// An attempt did not succeed, and a newer task had taken its place
    /// ([`Unique::replace`](crate::Unique::replace)): the task was dropped.
    Superseded {
        /// The task's id.
        id: String,
        /// Its kind.
        kind: String,
        /// Its queue.
        queue: String,
        /// What it failed with; empty where it did not fail.
        error: String,
    },
    /// The server lost the lease of a task that it was running.
    LeaseLost {
        /// The task's id.
        id: String,
        /// Its queue.
        queue: String,
    },
    /// Redis refused to settle a task, because its lease is not this server's any more.
    SettleRefused {
        /// The task's id.
        id: String,
        /// Its queue.
        queue: String,
    },
    /// A handler ended well after its timeout or deadline, within the cancel grace: its task is
    /// completed. It may soon take longer.
    OverLimit {
        /// The task's id.
        id: String,
        /// Its kind.
        kind: String,
        /// Its queue.
        queue: String,
    },
    /// A handler did not return when cancelled; it keeps its slot until it does.
    HandlerLeaked {
        /// The task's id.
        id: String,
        /// Its kind.
        kind: String,
    },
    /// A dead-letter hook failed, panicked or took too long. It will be tried again.
    HookFailed {
        /// The task's id.
        id: String,
        /// Its kind.
        kind: String,
        /// Its queue.
        queue: String,
        /// What the hook failed with.
        error: String,
    },
    /// A dead-letter hook was owed and will never run: its task left the archive, because of its limits,
    /// and either no server has the hook any more or it was owed for longer than
    /// [`keep_for_hooks`](crate::server::ServerBuilder::keep_for_hooks).
    HookDropped {
        /// The task's id.
        id: String,
        /// Its kind; empty where its record cannot be read.
        kind: String,
        /// Its queue.
        queue: String,
    },
    /// A record that cannot be read was set aside.
    Malformed {
        /// The task's id.
        id: String,
        /// Its queue.
        queue: String,
    },
    /// Archived or completed tasks were removed before their time, because Redis was nearly full: see
    /// [`ServerBuilder::kept_memory`](crate::server::ServerBuilder::kept_memory).
    TasksShed {
        /// Their queue.
        queue: String,
        /// How many.
        tasks: usize,
        /// About how much memory they had.
        bytes: u64,
    },
    /// A part of the server cannot reach Redis, or was refused by it.
    ConnectionLost {
        /// Which part.
        component: &'static str,
        /// What happened, and why.
        error: String,
    },
    /// That part works again.
    ConnectionRestored {
        /// Which part.
        component: &'static str,
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

impl Event {
    /// The span in which the user's function is told of it.
    pub(crate) fn span(&self, server_id: &str) -> Span {
        let (id, kind, queue) = match self {
            Self::Retried {
                id, kind, queue, ..
            }
            | Self::Archived {
                id, kind, queue, ..
            }
            | Self::Superseded {
                id, kind, queue, ..
            }
            | Self::HookFailed {
                id, kind, queue, ..
            }
            | Self::HookDropped { id, kind, queue }
            | Self::Deleted { id, kind, queue }
            | Self::OverLimit { id, kind, queue } => (Some(id), Some(kind), Some(queue)),
            Self::LeaseLost { id, queue }
            | Self::SettleRefused { id, queue }
            | Self::Malformed { id, queue } => (Some(id), None, Some(queue)),
            Self::TasksShed { queue, .. } => (None, None, Some(queue)),
            Self::HandlerLeaked { id, kind } => (Some(id), Some(kind), None),
            Self::ConnectionLost { .. }
            | Self::ConnectionRestored { .. }
            | Self::RuntimeBlocked(_)
            | Self::CallbackPanicked(_) => (None, None, None),
        };
        tracing::info_span!(
            "event",
            task.id = id,
            task.kind = kind,
            queue,
            server.id = server_id,
        )
    }
}
