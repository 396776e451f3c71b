use std::error::Error as StdError;
use std::fmt;
use std::time::Duration;

use crate::router::outcomes::BoxError;
use crate::router::outcomes::verdict::{Carrier, Verdict};

/// An error that says what becomes of the task.
///
/// It reads like the error that it wraps. Its verdict is found through the chain of sources, so
/// other errors may wrap it in turn. Where there are several verdicts, the outermost counts.
///
/// ```
/// # use serde::{Deserialize, Serialize};
/// # use windlass::{Task, TaskError};
/// # use std::time::Duration;
/// # #[derive(Serialize, Deserialize)]
/// # struct Charge { cents: i64 }
/// # impl Task for Charge { const KIND: &'static str = "card:charge"; }
/// async fn charge(task: Charge) -> Result<(), TaskError> {
///     if task.cents < 0 {
///         return Err(TaskError::skip_retry("a negative amount"));
///     }
///     if bank_is_closed() {
///         return Err(TaskError::snooze(Duration::from_secs(3600)));
///     }
///     Ok(())
/// }
/// # fn bank_is_closed() -> bool { false }
/// ```
pub struct TaskError(Carrier);

impl TaskError {
    /// The task is archived, also if it has retries left: another attempt would fail as well.
    pub fn skip_retry(error: impl Into<Box<dyn StdError + Send + Sync>>) -> Self {
        Self::new(Verdict::SkipRetry, error.into())
    }

    /// The task is tried again after this delay instead of the retry policy's, if it has retries
    /// left. Zero means now.
    pub fn retry_after(error: impl Into<Box<dyn StdError + Send + Sync>>, delay: Duration) -> Self {
        Self::new(Verdict::RetryAfter(delay), error.into())
    }

    /// The task is dropped, neither tried again nor archived nor kept for its retention: nobody needs it any
    /// more. Who waits for it is told that it is gone.
    pub fn revoke(error: impl Into<Box<dyn StdError + Send + Sync>>) -> Self {
        Self::new(Verdict::Revoke, error.into())
    }

    /// The task runs again after this delay, and this attempt does not count: it is too early.
    pub fn snooze(delay: Duration) -> Self {
        Self(Carrier {
            verdict: Verdict::Snooze(delay),
            error: None,
        })
    }

    /// What becomes of the task.
    pub fn verdict(&self) -> Verdict {
        self.0.verdict
    }

    /// The error that was wrapped; `None` for a snooze.
    pub fn inner(&self) -> Option<&(dyn StdError + Send + Sync + 'static)> {
        self.0.error.as_deref()
    }

    fn new(verdict: Verdict, error: BoxError) -> Self {
        Self(Carrier {
            verdict,
            error: Some(error),
        })
    }
}

impl StdError for TaskError {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        Some(&self.0)
    }
}

impl fmt::Display for TaskError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0.error {
            Some(error) => error.fmt(f),
            None => self.0.verdict.fmt(f),
        }
    }
}

impl fmt::Debug for TaskError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TaskError")
            .field("verdict", &self.0.verdict)
            .field("error", &self.0.error)
            .finish()
    }
}

/// Gives the error of a `Result` a verdict, in the middle of a handler.
///
/// ```
/// # use windlass::TaskError;
/// # use windlass::handler::TaskResultExt;
/// fn parse(amount: &str) -> Result<i64, TaskError> {
///     amount.parse::<i64>().or_skip_retry()
/// }
/// ```
pub trait TaskResultExt<T>: Sealed {
    /// On an error, the task is archived: see [`TaskError::skip_retry`].
    fn or_skip_retry(self) -> Result<T, TaskError>;

    /// On an error, the task is tried again after this delay: see [`TaskError::retry_after`].
    fn or_retry_after(self, delay: Duration) -> Result<T, TaskError>;

    /// On an error, the task is dropped: see [`TaskError::revoke`].
    fn or_revoke(self) -> Result<T, TaskError>;
}

/// Keeps [`TaskResultExt`] from being implemented outside of windlass, so that it can grow.
pub trait Sealed {}

impl<T, E> Sealed for Result<T, E> {}

impl<T, E: Into<BoxError>> TaskResultExt<T> for Result<T, E> {
    fn or_skip_retry(self) -> Result<T, TaskError> {
        self.map_err(TaskError::skip_retry)
    }

    fn or_retry_after(self, delay: Duration) -> Result<T, TaskError> {
        self.map_err(|error| TaskError::retry_after(error, delay))
    }

    fn or_revoke(self) -> Result<T, TaskError> {
        self.map_err(TaskError::revoke)
    }
}

#[cfg(test)]
mod tests {
    use std::io;

    use anyhow::Context as _;
    use thiserror::Error;

    use super::*;
    use crate::router::Failure;

    type Boxed = Box<dyn StdError + Send + Sync>;

    fn refused() -> io::Error {
        io::Error::other("refused")
    }

    fn skip() -> TaskError {
        TaskError::skip_retry(refused())
    }

    #[derive(Debug, Error)]
    #[error("sending failed")]
    struct Sending(#[source] TaskError);

    #[derive(Debug, Error)]
    #[error(transparent)]
    struct Transparent(#[from] TaskError);

    /// An error with a source.
    #[derive(Debug, Error)]
    #[error("no mail")]
    struct NoMail(#[source] io::Error);

    #[track_caller]
    fn error<T: std::fmt::Debug, E>(result: Result<T, E>) -> E {
        result.expect_err("it is an error")
    }

    fn check(error: impl Into<Boxed>, verdict: Verdict, text: &str) {
        let failure = Failure::from_error(error.into());
        assert_eq!(failure.verdict(), verdict);
        assert_eq!(failure.text(), text);
    }

    #[test]
    fn an_error_without_a_verdict_is_retried() {
        check(refused(), Verdict::Retry, "refused");
        check(NoMail(refused()), Verdict::Retry, "no mail: refused");
        check("text", Verdict::Retry, "text");
        check(
            anyhow::Error::new(NoMail(refused())).context("outer"),
            Verdict::Retry,
            "outer: no mail: refused",
        );
    }

    #[test]
    fn every_verdict_is_found() {
        let s = Duration::from_secs(1);
        check(skip(), Verdict::SkipRetry, "refused");
        check(TaskError::revoke("gone"), Verdict::Revoke, "gone");
        check(
            TaskError::retry_after("busy", s),
            Verdict::RetryAfter(s),
            "busy",
        );
        check(TaskError::snooze(s), Verdict::Snooze(s), "snoozed for 1s");
    }

    #[test]
    fn every_verdict_is_given_by_a_word_after_a_result() {
        let s = Duration::from_secs(1);
        let failed = || Err::<(), _>(refused());
        check(
            error(failed().or_skip_retry()),
            Verdict::SkipRetry,
            "refused",
        );
        check(error(failed().or_revoke()), Verdict::Revoke, "refused");
        let later = error(failed().or_retry_after(s));
        check(later, Verdict::RetryAfter(s), "refused");
        assert!(matches!(Ok::<_, io::Error>(1).or_skip_retry(), Ok(1)));
    }

    #[test]
    fn a_verdict_is_found_under_every_wrapper() {
        check(
            Sending(skip()),
            Verdict::SkipRetry,
            "sending failed: refused",
        );
        check(Transparent(skip()), Verdict::SkipRetry, "refused");
        check(Boxed::from(skip()), Verdict::SkipRetry, "refused");
        check(anyhow::Error::new(skip()), Verdict::SkipRetry, "refused");
        check(
            anyhow::Error::new(skip()).context("a").context("b"),
            Verdict::SkipRetry,
            "b: a: refused",
        );
        let in_context = error(Err::<(), _>(skip()).context("c"));
        check(in_context, Verdict::SkipRetry, "c: refused");
        check(
            anyhow::Error::from_boxed(Box::new(skip())),
            Verdict::SkipRetry,
            "refused",
        );
        check(io::Error::other(skip()), Verdict::SkipRetry, "refused");
    }

    #[test]
    fn every_kind_of_error_can_be_given_a_verdict() {
        let skip_retry = |e: Boxed| TaskError::skip_retry(e);
        check(
            skip_retry(NoMail(refused()).into()),
            Verdict::SkipRetry,
            "no mail: refused",
        );
        check(
            skip_retry(String::from("text").into()),
            Verdict::SkipRetry,
            "text",
        );
        let error = anyhow::Error::new(NoMail(refused())).context("outer");
        let error = Err::<(), _>(error).or_skip_retry();
        check(
            anyhow::Error::new(self::error(error)),
            Verdict::SkipRetry,
            "outer: no mail: refused",
        );
    }

    #[test]
    fn the_outermost_verdict_counts() {
        let error = TaskError::revoke(anyhow::Error::new(skip()).context("outer"));
        check(error, Verdict::Revoke, "outer: refused");
    }

    #[test]
    fn the_wrapped_error_can_be_looked_at() {
        let error = skip();
        let inner = error.inner().and_then(|it| it.downcast_ref());
        let kind = inner.map(io::Error::kind);
        assert_eq!(kind, Some(io::ErrorKind::Other));
        assert!(TaskError::snooze(Duration::ZERO).inner().is_none());
    }
}
