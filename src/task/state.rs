use std::fmt;

/// What has become of a task so far. Each state is one sorted set in Redis.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum TaskState {
    /// Waits for its due time.
    Scheduled,
    /// Waits for a free worker.
    Pending,
    /// Leased by a server that runs it.
    Active,
    /// Failed, and waits to be tried again.
    Retry,
    /// Given up: kept for an operator to look at.
    Archived,
    /// Done, and kept for its retention.
    Completed,
}

impl TaskState {
    /// The state's name, as in the Redis key.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Scheduled => "scheduled",
            Self::Pending => "pending",
            Self::Active => "active",
            Self::Retry => "retry",
            Self::Archived => "archived",
            Self::Completed => "completed",
        }
    }
}

impl fmt::Display for TaskState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
