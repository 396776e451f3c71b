use thiserror::Error;

/// What became of a task that Redis answered for.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Enqueued {
    /// The task's id.
    pub id: String,
    /// Whether it is new.
    pub outcome: EnqueueOutcome,
}

/// Whether an enqueue added a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum EnqueueOutcome {
    /// The task was added.
    New,
    /// A task with this id exists in the queue; nothing was changed.
    Exists,
}

/// A task with this id exists in the queue already.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("a task with id {id} exists already")]
#[non_exhaustive]
pub struct AlreadyExists {
    /// The id.
    pub id: String,
}

impl Enqueued {
    pub(super) fn answered(id: String, new: bool) -> Self {
        let outcome = if new {
            EnqueueOutcome::New
        } else {
            EnqueueOutcome::Exists
        };
        Self { id, outcome }
    }

    /// Whether the task was added.
    pub fn is_new(&self) -> bool {
        self.outcome == EnqueueOutcome::New
    }

    /// The id, or an error for callers to whom an existing task is one.
    pub fn require_new(self) -> Result<String, AlreadyExists> {
        if self.is_new() {
            Ok(self.id)
        } else {
            Err(AlreadyExists { id: self.id })
        }
    }
}
