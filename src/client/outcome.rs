use thiserror::Error;

use crate::broker::{EnqueueAnswer, EnqueueItem};

/// What became of a task that Redis answered for.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Enqueued {
    /// The id of the task that now stands for it: its own, or that of the task that was there.
    pub id: String,
    /// Its queue.
    pub queue: String,
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
    /// Another task has its lock ([`Unique`](crate::Unique)); nothing was changed, and `id` is that
    /// task's.
    Duplicate,
    /// The task that has its lock waited, and is now this task but for its id, which `id` says.
    Replaced,
}

/// A task with this id, or with this lock, is in the queue already.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("task {id} is in the queue already")]
#[non_exhaustive]
pub struct AlreadyExists {
    /// The id of the task that is there.
    pub id: String,
}

impl Enqueued {
    pub(super) fn answered(item: &EnqueueItem, answer: EnqueueAnswer) -> Self {
        let (id, outcome) = match answer {
            EnqueueAnswer::New => (item.id.clone(), EnqueueOutcome::New),
            EnqueueAnswer::Exists => (item.id.clone(), EnqueueOutcome::Exists),
            EnqueueAnswer::Duplicate { holder } => (holder, EnqueueOutcome::Duplicate),
            EnqueueAnswer::Replaced { holder } => (holder, EnqueueOutcome::Replaced),
        };
        let queue = item.options.queue().to_owned();
        Self { id, queue, outcome }
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
