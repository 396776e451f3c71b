use std::error::Error as StdError;
use std::fmt;
use std::time::Duration;

use super::catch;

/// What becomes of a task whose attempt failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Verdict {
    /// It is tried again after the retry delay, until its retries are exhausted.
    #[default]
    Retry,
    /// It is tried again after this delay instead, until its retries are exhausted.
    RetryAfter(Duration),
    /// It is archived now, whatever retries it has left.
    SkipRetry,
    /// It is dropped: neither tried again nor archived.
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

/// The link of an error's chain that holds a verdict.
///
/// It stands below its [`TaskError`](super::TaskError) and not in it, because boxing an
/// `anyhow::Error` hides the type of the topmost error, but never that of its sources.
pub(super) struct Carrier {
    pub(super) verdict: Verdict,
    pub(super) error: Option<super::BoxError>,
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

/// An error and its sources, from the outermost on. Bounded, because a user's `source` may go round
/// in a circle; it may also panic, and then the chain ends there.
pub(super) fn chain<'a>(
    error: &'a (dyn StdError + 'static),
) -> impl Iterator<Item = &'a (dyn StdError + 'static)> {
    std::iter::successors(Some(error), |e: &&'a (dyn StdError + 'static)| {
        catch(|| (**e).source()).unwrap_or(None)
    })
    .take(128)
}
