use std::time::Duration;

use tracing::Span;

use crate::broker::ArchiveReason;
use crate::server::observe::event_task::EventTask;

/// Something that an operator may want to count or be told of; see
/// [`ServerBuilder::on_event`](crate::server::ServerBuilder::on_event). The functions make one for a test of
/// such an observer.
///
/// ```
/// use windlass::handler::ArchiveReason;
/// use windlass::server::{Event, EventTask};
///
/// let mut page = String::new();
/// let mut observer = |event: &Event| {
///     if let Event::Archived { task, error, .. } = event {
///         page = format!("{} {} is dead: {error}", task.kind, task.id);
///     }
/// };
/// let task = EventTask::new("42", "email:send", "mail");
/// observer(&Event::archived(task, ArchiveReason::RetriesExhausted, "no such host"));
/// assert_eq!(page, "email:send 42 is dead: no such host");
/// ```
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Event {
    /// An attempt failed, or lost its lease, and will be repeated.
    #[non_exhaustive]
    Retried {
        /// Which task.
        task: EventTask,
        /// Until the next attempt.
        delay: Duration,
        /// What it failed with.
        error: String,
    },
    /// A task was given up. One that an [`Inspector`](crate::Inspector) archives while it waits is not told of:
    /// its caller knows.
    #[non_exhaustive]
    Archived {
        /// Which task.
        task: EventTask,
        /// Why.
        reason: ArchiveReason,
        /// What it failed with last; empty where it had not run.
        error: String,
    },
    /// A running task was deleted, because somebody had cancelled it so, and its handler did not decide
    /// otherwise.
    #[non_exhaustive]
    Deleted {
        /// Which task.
        task: EventTask,
    },
    /// An attempt did not succeed, and a newer task had taken its place
    /// ([`Unique::replace`](crate::Unique::replace)): the task was dropped.
    #[non_exhaustive]
    Superseded {
        /// Which task.
        task: EventTask,
        /// What it failed with; empty where it did not fail.
        error: String,
    },
    /// The server lost the lease of a task that it was running.
    #[non_exhaustive]
    LeaseLost {
        /// Which task.
        task: EventTask,
    },
    /// Redis refused to settle a task, because its lease is not this server's any more.
    #[non_exhaustive]
    SettleRefused {
        /// Which task.
        task: EventTask,
    },
    /// A handler ended well after its timeout or deadline, within the cancel grace: its task is
    /// completed. It may soon take longer.
    #[non_exhaustive]
    OverLimit {
        /// Which task.
        task: EventTask,
    },
    /// A handler did not return when cancelled; it keeps its slot until it does.
    #[non_exhaustive]
    HandlerLeaked {
        /// Which task.
        task: EventTask,
    },
    /// A dead-letter hook failed, panicked or took too long. It will be tried again.
    #[non_exhaustive]
    HookFailed {
        /// Which task.
        task: EventTask,
        /// What the hook failed with.
        error: String,
    },
    /// A dead-letter hook was owed and will never run: its task cannot be read, or left the archive because of
    /// its limits, and then either no server has the hook any more or it was owed for longer than
    /// [`keep_for_hooks`](crate::server::ServerBuilder::keep_for_hooks).
    #[non_exhaustive]
    HookDropped {
        /// Which task.
        task: EventTask,
    },
    /// A record that cannot be read was set aside.
    #[non_exhaustive]
    Malformed {
        /// Which task.
        task: EventTask,
    },
    /// Archived or completed tasks were removed before their time, because Redis was nearly full: see
    /// [`ServerBuilder::kept_memory`](crate::server::ServerBuilder::kept_memory).
    #[non_exhaustive]
    TasksShed {
        /// Their queue.
        queue: String,
        /// How many.
        tasks: usize,
        /// About how much memory they had.
        bytes: u64,
    },
    /// A part of the server cannot reach Redis, or was refused by it.
    #[non_exhaustive]
    ConnectionLost {
        /// Which part.
        component: &'static str,
        /// What happened, and why.
        error: String,
    },
    /// That part works again.
    #[non_exhaustive]
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

macro_rules! constructors {
    ($($name:ident -> $variant:ident($($field:ident: $type:ty),*);)*) => {$(
        #[doc = concat!("Makes an [`Event::", stringify!($variant), "`].")]
        pub fn $name($($field: impl Into<$type>),*) -> Self {
            Self::$variant { $($field: $field.into()),* }
        }
    )*};
}

impl Event {
    constructors! {
        retried -> Retried(task: EventTask, delay: Duration, error: String);
        archived -> Archived(task: EventTask, reason: ArchiveReason, error: String);
        deleted -> Deleted(task: EventTask);
        superseded -> Superseded(task: EventTask, error: String);
        lease_lost -> LeaseLost(task: EventTask);
        settle_refused -> SettleRefused(task: EventTask);
        over_limit -> OverLimit(task: EventTask);
        handler_leaked -> HandlerLeaked(task: EventTask);
        hook_failed -> HookFailed(task: EventTask, error: String);
        hook_dropped -> HookDropped(task: EventTask);
        malformed -> Malformed(task: EventTask);
        tasks_shed -> TasksShed(queue: String, tasks: usize, bytes: u64);
        connection_lost -> ConnectionLost(component: &'static str, error: String);
        connection_restored -> ConnectionRestored(component: &'static str, after: Duration);
    }

    /// The span in which the user's function is told of it.
    pub(crate) fn span(&self, server_id: &str) -> Span {
        let (task, queue) = match self {
            Self::Retried { task, .. }
            | Self::Archived { task, .. }
            | Self::Deleted { task }
            | Self::Superseded { task, .. }
            | Self::LeaseLost { task }
            | Self::SettleRefused { task }
            | Self::OverLimit { task }
            | Self::HandlerLeaked { task }
            | Self::HookFailed { task, .. }
            | Self::HookDropped { task }
            | Self::Malformed { task } => (Some(task), Some(&task.queue)),
            Self::TasksShed { queue, .. } => (None, Some(queue)),
            Self::ConnectionLost { .. }
            | Self::ConnectionRestored { .. }
            | Self::RuntimeBlocked(_)
            | Self::CallbackPanicked(_) => (None, None),
        };
        let kind = task.map(|task| &task.kind).filter(|kind| !kind.is_empty());
        tracing::info_span!(
            "event",
            task.id = task.map(|task| &task.id),
            task.kind = kind,
            queue,
            attempt = task.and_then(|task| task.attempt),
            server.id = server_id,
        )
    }
}
