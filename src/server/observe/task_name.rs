use tracing::Span;

use crate::broker::Queue;
use crate::server::observe::event_task::EventTask;

/// A task, as logs and events name it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TaskName<'a> {
    pub(crate) id: &'a str,
    pub(crate) kind: &'a str,
    pub(crate) queue: &'a Queue,
    /// The number of its attempt, from 1 on; `None` where it was waiting for one.
    pub(crate) attempt: Option<u64>,
}

impl TaskName<'_> {
    /// The span in which a user's code runs for this task.
    pub(crate) fn span(&self, server_id: &str) -> Span {
        tracing::info_span!(
            "task",
            task.id = self.id,
            task.kind = self.kind,
            queue = &*self.queue.name,
            attempt = self.attempt,
            lease = tracing::field::Empty,
            server.id = server_id,
        )
    }
}

impl From<TaskName<'_>> for EventTask {
    fn from(name: TaskName<'_>) -> Self {
        Self {
            attempt: name.attempt,
            ..Self::new(name.id, name.kind, &*name.queue.name)
        }
    }
}
