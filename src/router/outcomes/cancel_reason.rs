use std::fmt;

/// Why a running task was cancelled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum CancelReason {
    /// The attempt ran for as long as it may.
    Timeout,
    /// The task's deadline has come.
    Deadline,
    /// The lease is another server's, or nobody's: what this attempt does now may be done twice.
    LeaseLost,
    /// The server stops, and its grace is over.
    Shutdown,
    /// Somebody asked for it by the task's id.
    Requested,
}

impl fmt::Display for CancelReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Timeout => "the attempt ran out of time",
            Self::Deadline => "the task's deadline has come",
            Self::LeaseLost => "the lease was lost",
            Self::Shutdown => "the server stops",
            Self::Requested => "it was asked for",
        })
    }
}
