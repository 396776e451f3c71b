use std::fmt;

/// Where a task stands: each state is one sorted set in Redis.
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
    /// Waits in a group to be run together with others.
    Aggregating,
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
            Self::Aggregating => "aggregating",
        }
    }
}

impl fmt::Display for TaskState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
