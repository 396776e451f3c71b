use std::error::Error as StdError;
use std::fmt;
use std::time::Duration;

use crate::router::outcomes::BoxError;
use crate::user_code::chain;

/// What becomes of a task whose attempt failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Verdict {
    /// It is tried again after the retry delay, until its retries are exhausted.
    #[default]
    Retry,
    /// It is tried again after this delay instead, until its retries are exhausted.
    RetryAfter(Duration),
    /// It is archived now, also if it has retries left.
    SkipRetry,
    /// It is dropped: neither tried again nor archived, and not kept for its retention.
    Revoke,
    /// It runs again after this delay, and this attempt does not count as failed.
    Snooze(Duration),
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Retry => f.write_str("to be retried"),
            Self::RetryAfter(delay) => write!(f, "to be retried in {delay:?}"),
            Self::SkipRetry => f.write_str("not to be retried"),
            Self::Revoke => f.write_str("revoked"),
            Self::Snooze(delay) => write!(f, "snoozed for {delay:?}"),
        }
    }
}

impl Verdict {
    /// The outermost verdict in an error's chain.
    pub(super) fn of(error: &(dyn StdError + 'static)) -> Self {
        chain(error)
            .find_map(|e| e.downcast_ref::<Carrier>())
            .map_or(Self::Retry, |carrier| carrier.verdict)
    }
}

/// The link in an error's chain of sources that holds a verdict.
///
/// It is the source of its [`TaskError`](crate::TaskError) instead of a part of it, because boxing an
/// `anyhow::Error` hides the type of the topmost error, but never that of its sources.
pub(super) struct Carrier {
    pub(super) verdict: Verdict,
    pub(super) error: Option<BoxError>,
}

impl StdError for Carrier {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        self.error.as_ref()?.source()
    }
}

impl fmt::Display for Carrier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.verdict.fmt(f)
    }
}

impl fmt::Debug for Carrier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.verdict.fmt(f)
    }
}
