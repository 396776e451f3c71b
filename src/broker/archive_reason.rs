use std::fmt;

/// Why a task was given up, as its record's field `reason` says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ArchiveReason {
    /// It failed, and its retries were used up: `retries_exhausted`.
    RetriesExhausted,
    /// Its server died, or lost its connection, once too often: `lease_expired`.
    LeaseExpired,
    /// Its deadline passed before it could start, or start again: `deadline_passed`.
    DeadlinePassed,
    /// Its handler said that it must not be retried: `skipped`.
    Skipped,
    /// Its payload is not what its handler takes: `undecodable`.
    Undecodable,
    /// No handler takes its kind: `unknown_kind`.
    UnknownKind,
    /// It was cancelled, and its handler did not decide otherwise: `cancelled`.
    Cancelled,
    /// Somebody archived it by hand: `operator`.
    Operator,
    /// Its record could not be read: `malformed`.
    Malformed,
}

/// How the error of a task begins that was archived for its deadline; `lua/shared/endings.lua` writes it.
pub(crate) const DEADLINE_PASSED: &str = "its deadline passed";

impl ArchiveReason {
    const ALL: [Self; 9] = [
        Self::RetriesExhausted,
        Self::LeaseExpired,
        Self::DeadlinePassed,
        Self::Skipped,
        Self::Undecodable,
        Self::UnknownKind,
        Self::Cancelled,
        Self::Operator,
        Self::Malformed,
    ];

    /// The text in the record.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::RetriesExhausted => "retries_exhausted",
            Self::LeaseExpired => "lease_expired",
            Self::DeadlinePassed => "deadline_passed",
            Self::Skipped => "skipped",
            Self::Undecodable => "undecodable",
            Self::UnknownKind => "unknown_kind",
            Self::Cancelled => "cancelled",
            Self::Operator => "operator",
            Self::Malformed => "malformed",
        }
    }

    /// The reason that this text stands for.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|reason| reason.as_str() == text)
    }
}

/// The text in the record.
impl fmt::Display for ArchiveReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_reason_is_read_as_it_is_written() {
        for reason in ArchiveReason::ALL {
            assert_eq!(ArchiveReason::parse(&reason.to_string()), Some(reason));
        }
        assert_eq!(ArchiveReason::parse(""), None);
    }
}
