use std::error::Error as StdError;
use std::fmt;
use std::time::Duration;

use thiserror::Error;

use crate::router::outcomes::BoxError;
use crate::router::outcomes::cancel_reason::CancelReason;
use crate::router::outcomes::verdict::{Carrier, Verdict};
use crate::task::PayloadError;
use crate::user_code::{Contained, Panicked, chain, error_text};

/// What went wrong in an attempt, and what is to become of the task.
pub struct Failure(Box<Inner>);

struct Inner {
    error: Contained<BoxError>,
    verdict: Verdict,
    cause: FailureCause,
}

/// What kind of thing went wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum FailureCause {
    /// The handler, an extractor or middleware returned an error.
    Error,
    /// The handler, an extractor or middleware panicked.
    Panic,
    /// The payload is not what the handler takes. The task is put off, and in the end archived.
    Undecodable,
    /// The handler succeeded with a result that cannot be encoded. The task is archived, because
    /// another attempt would repeat the work and end the same way.
    Unencodable,
    /// The attempt ran for as long as it may.
    Timeout,
    /// The attempt was cancelled for another reason than its timeout.
    Cancelled,
    /// No handler takes tasks of this kind.
    UnknownKind,
    /// The operating system had no thread for a blocking handler, which has not run. The task is
    /// handed back and spends no retry.
    NotStarted,
}

impl Failure {
    /// The error. Its sources say more.
    pub fn error(&self) -> &(dyn StdError + Send + Sync + 'static) {
        &**self.0.error
    }

    /// The error, to wrap into another one.
    pub fn into_error(self) -> Box<dyn StdError + Send + Sync> {
        self.0.error.into_inner()
    }

    /// What is to become of the task.
    pub fn verdict(&self) -> Verdict {
        self.0.verdict
    }

    /// What kind of thing went wrong.
    pub fn cause(&self) -> FailureCause {
        self.0.cause
    }

    /// The error and its sources, joined with `: `, at most 4 KiB long. A source that says the same
    /// as what it caused is left out.
    pub fn text(&self) -> String {
        let said: &(dyn StdError + 'static) = self.error();
        error_text(chain(said).filter(|error| !error.is::<Carrier>()))
    }

    /// Whether it is an error or a panic without a verdict of its own.
    pub(crate) fn is_plain(&self) -> bool {
        let is_users = matches!(self.0.cause, FailureCause::Error | FailureCause::Panic);
        is_users && self.0.verdict == Verdict::Retry
    }

    pub(crate) fn from_error(error: BoxError) -> Self {
        let verdict = Verdict::of(&*error);
        Self::new(error, verdict, FailureCause::Error)
    }

    /// A panic of a user's code is tried again, like an error.
    pub(crate) fn from_panic(panic: Panicked) -> Self {
        Self::new(panic.into(), Verdict::Retry, FailureCause::Panic)
    }

    /// An attempt that was cut off at its timeout.
    pub(crate) fn timeout(after: Duration) -> Self {
        let error = Ended::TimedOut(after);
        Self::new(error.into(), Verdict::Retry, FailureCause::Timeout)
    }

    /// An attempt that was cut off.
    pub(crate) fn cancelled(reason: CancelReason) -> Self {
        let cause = match reason {
            CancelReason::Timeout => FailureCause::Timeout,
            _ => FailureCause::Cancelled,
        };
        Self::new(Ended::Cancelled(reason).into(), Verdict::Retry, cause)
    }

    /// An attempt whose handler returned an error after it had reached this limit: it has failed by the
    /// limit, and the error tells more. A verdict of the error's own holds.
    pub(crate) fn past(self, limit: Self) -> Self {
        let (verdict, mut cause) = (self.0.verdict, self.0.cause);
        if cause == FailureCause::Error {
            cause = limit.0.cause;
        }
        let (limit, error) = (limit.into_error(), self.into_error());
        Self::new(Ended::Past { limit, error }.into(), verdict, cause)
    }

    pub(crate) fn undecodable(error: PayloadError) -> Self {
        Self::new(error.into(), Verdict::SkipRetry, FailureCause::Undecodable)
    }

    pub(crate) fn unencodable(error: impl Into<BoxError>) -> Self {
        let error = Ended::Unencodable(error.into());
        Self::new(error.into(), Verdict::SkipRetry, FailureCause::Unencodable)
    }

    pub(crate) fn not_started(error: std::io::Error) -> Self {
        let error = Ended::NotStarted(error);
        Self::new(error.into(), Verdict::Retry, FailureCause::NotStarted)
    }

    pub(crate) fn unknown_kind(kind: &str) -> Self {
        let error = Ended::UnknownKind(kind.to_owned());
        Self::new(error.into(), Verdict::Retry, FailureCause::UnknownKind)
    }

    fn new(error: BoxError, verdict: Verdict, cause: FailureCause) -> Self {
        Self(Box::new(Inner {
            error: Contained::new(error),
            verdict,
            cause,
        }))
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text())
    }
}

impl fmt::Debug for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Failure")
            .field("error", &self.text())
            .field("verdict", &self.verdict())
            .field("cause", &self.cause())
            .finish()
    }
}

/// The failures that are not a user's error.
#[derive(Debug, Error)]
enum Ended {
    #[error("timed out after {0:?}")]
    TimedOut(Duration),
    #[error("cancelled: {0}")]
    Cancelled(CancelReason),
    #[error("{limit}")]
    Past {
        limit: BoxError,
        #[source]
        error: BoxError,
    },
    #[error("the result cannot be stored")]
    Unencodable(#[source] BoxError),
    #[error("no handler for tasks of kind {0:?}")]
    UnknownKind(String),
    #[error("no thread could be started for the handler")]
    NotStarted(#[source] std::io::Error),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_attempt_that_was_cut_off_says_why() {
        let failure = Failure::timeout(Duration::from_secs(90));
        assert_eq!(failure.text(), "timed out after 90s");
        assert_eq!(failure.cause(), FailureCause::Timeout);
        let failure = Failure::from_error("oh".into()).past(failure);
        assert_eq!(failure.text(), "timed out after 90s: oh");
        assert_eq!(failure.cause(), FailureCause::Timeout);
        let failure = Failure::cancelled(CancelReason::LeaseLost);
        assert_eq!(failure.text(), "cancelled: the lease was lost");
        assert_eq!(failure.cause(), FailureCause::Cancelled);
    }
}
