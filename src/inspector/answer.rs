use crate::broker::operator::{Answer, EndWish};

/// What became of an operator's wish for one task.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum ChangeOutcome {
    /// It is done.
    Done,
    /// There is no such task in the queue.
    NotFound,
    /// It runs, which rules this out.
    Active,
    /// It is completed, which rules this out.
    Completed,
    /// It was already where it was to go.
    Already,
    /// It is of another kind than the task that was to replace it.
    #[non_exhaustive]
    OtherKind {
        /// Its kind.
        kind: String,
    },
    /// Another task has its lock ([`Unique`](crate::Unique)).
    #[non_exhaustive]
    Duplicate {
        /// That task's id.
        holder: String,
    },
    /// A newer task has taken its place ([`Unique::replace`](crate::Unique::replace)), so it was dropped.
    Superseded,
    /// It runs, and its server was told: its handler is cancelled.
    #[non_exhaustive]
    Requested {
        /// That server's id.
        server: String,
    },
}

impl From<Answer> for ChangeOutcome {
    fn from(answer: Answer) -> Self {
        match answer {
            Answer::Done => Self::Done,
            Answer::Missing => Self::NotFound,
            Answer::Active => Self::Active,
            Answer::Completed => Self::Completed,
            Answer::Already => Self::Already,
            Answer::Superseded => Self::Superseded,
            Answer::OtherKind { kind } => Self::OtherKind { kind },
            Answer::Duplicate { holder } => Self::Duplicate { holder },
            Answer::Requested { server } => Self::Requested { server },
        }
    }
}

/// What becomes of a cancelled task.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum CancelMode {
    /// Its handler decides by how it ends, as always. A task that waits is archived.
    #[default]
    Decide,
    /// It is archived, unless its handler completes it.
    Archive,
    /// It is deleted, unless its handler archives it.
    Delete,
}

impl From<CancelMode> for EndWish {
    fn from(mode: CancelMode) -> Self {
        match mode {
            CancelMode::Decide => Self::Decide,
            CancelMode::Archive => Self::Archive,
            CancelMode::Delete => Self::Delete,
        }
    }
}
