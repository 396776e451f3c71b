use std::error::Error as StdError;
use std::fmt::{self, Write};
use std::time::Duration;

use thiserror::Error;

use super::cut::Cut;
use super::verdict::{Carrier, chain};
use super::{BoxError, CancelReason, Panicked, Verdict, catch};
use crate::defaults::MAX_ERROR;
use crate::task::PayloadError;

/// What went wrong in an attempt, and what is to become of the task.
pub struct Failure(Box<Inner>);

struct Inner {
    error: BoxError,
    verdict: Verdict,
    cause: FailureCause,
}

impl Inner {
    fn take_error(&mut self) -> BoxError {
        // A box of nothing, which allocates nothing.
        std::mem::replace(&mut self.error, Box::new(fmt::Error))
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        let error = self.take_error();
        // A user's error may panic when it is dropped. The panic hook has told it.
        let _ = catch(|| drop(error));
    }
}

/// What kind of thing went wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum FailureCause {
    /// The handler, an extractor or middleware returned an error.
    Error,
    /// The handler, an extractor or middleware panicked.
    Panic,
    /// The payload is not what the handler takes: it is archived.
    Undecodable,
    /// The handler succeeded with a result that cannot be packed: it is archived, because another
    /// attempt would do the work again for the same end.
    Unencodable,
    /// The attempt ran for as long as it may.
    Timeout,
    /// The attempt was cancelled for another reason than its timeout.
    Cancelled,
    /// No handler takes tasks of this kind.
    UnknownKind,
}

impl Failure {
    /// The error. Its sources say more.
    pub fn error(&self) -> &(dyn StdError + Send + Sync + 'static) {
        &*self.0.error
    }

    /// The error, to put into another one.
    pub fn into_error(mut self) -> Box<dyn StdError + Send + Sync> {
        self.0.take_error()
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
        error_text(self.error())
    }

    /// Whether it is an error that came without a verdict of its own.
    pub(crate) fn is_plain(&self) -> bool {
        self.0.cause == FailureCause::Error && self.0.verdict == Verdict::Retry
    }

    pub(super) fn from_error(error: BoxError) -> Self {
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

    pub(super) fn undecodable(error: PayloadError) -> Self {
        Self::new(error.into(), Verdict::SkipRetry, FailureCause::Undecodable)
    }

    pub(super) fn unencodable(error: PayloadError) -> Self {
        let error = Ended::Unencodable(error);
        Self::new(error.into(), Verdict::SkipRetry, FailureCause::Unencodable)
    }

    pub(super) fn unknown_kind(kind: &str) -> Self {
        let error = Ended::UnknownKind(kind.to_owned());
        Self::new(error.into(), Verdict::Retry, FailureCause::UnknownKind)
    }

    fn new(error: BoxError, verdict: Verdict, cause: FailureCause) -> Self {
        Self(Box::new(Inner {
            error,
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
    #[error("the result cannot be stored")]
    Unencodable(#[source] PayloadError),
    #[error("no handler for tasks of kind {0:?}")]
    UnknownKind(String),
}

/// An error and its sources as one text: see [`Failure::text`].
pub(crate) fn error_text(error: &(dyn StdError + 'static)) -> String {
    let mut text = Cut::new(MAX_ERROR);
    let mut last = None;
    for error in chain(error).filter(|e| !e.is::<Carrier>()) {
        let part = describe(error);
        if last.as_ref() == Some(&part) {
            continue;
        }
        let separator = if last.is_some() { ": " } else { "" };
        if write!(text, "{separator}{part}").is_err() {
            break;
        }
        last = Some(part);
    }
    text.into()
}

/// What one error says for itself. A `Display` of a user may fail or panic.
fn describe(error: &(dyn StdError + 'static)) -> String {
    let mut text = Cut::new(MAX_ERROR);
    let shown = catch(|| {
        // Only a full text or a broken `Display` ends in an error: what is there is kept.
        let _ = write!(text, "{error}");
    });
    match shown {
        Ok(()) => text.into(),
        Err(panicked) => format!("an error that cannot be shown: {panicked}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug)]
    struct Layer(&'static str, Option<Box<Layer>>);

    impl fmt::Display for Layer {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            match self.0 {
                "panic" => panic!("no words"),
                "broken" => Err(fmt::Error),
                text => f.write_str(text),
            }
        }
    }

    impl StdError for Layer {
        fn source(&self) -> Option<&(dyn StdError + 'static)> {
            self.1.as_deref().map(|layer| layer as _)
        }
    }

    fn text(layers: &[&'static str]) -> String {
        let mut layers = layers.iter().rev();
        let last = Layer(layers.next().expect("there is one"), None);
        let error = layers.fold(last, |inner, text| Layer(text, Some(Box::new(inner))));
        Failure::from_error(error.into()).text()
    }

    #[test]
    fn the_text_is_the_chain_without_repeats() {
        assert_eq!(text(&["a", "b\n\t\0", "c"]), "a: b\n\t\0: c");
        assert_eq!(text(&["a", "a", "b", "a"]), "a: b: a");
        assert_eq!(text(&["", "a"]), ": a");
    }

    #[test]
    fn a_display_that_panics_or_fails_does_not_hide_the_others() {
        let text = text(&["a", "panic", "broken", "b"]);
        let place = format!("{}:", file!());
        assert!(
            text.starts_with("a: an error that cannot be shown: panicked at "),
            "{text}"
        );
        assert!(text.contains(&place), "{text}");
        assert!(text.ends_with(": no words: : b"), "{text}");
    }

    #[test]
    fn a_long_text_is_cut_between_characters() {
        let long = "ü".repeat(MAX_ERROR);
        let text = Failure::from_error(format!("x{long}").into()).text();
        assert_eq!(text.len(), MAX_ERROR - 1);
        assert!(text.ends_with('ü'));
        let text = Failure::from_error("y".repeat(MAX_ERROR).into()).text();
        assert_eq!(text.len(), MAX_ERROR);
    }

    #[test]
    fn a_chain_without_an_end_has_a_text() {
        #[derive(Debug)]
        struct Circle;
        impl fmt::Display for Circle {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("circle")
            }
        }
        impl StdError for Circle {
            fn source(&self) -> Option<&(dyn StdError + 'static)> {
                Some(self)
            }
        }
        let failure = Failure::from_error(Circle.into());
        assert_eq!(failure.verdict(), Verdict::Retry);
        assert_eq!(failure.text(), "circle");
    }

    #[test]
    fn an_attempt_that_was_cut_off_says_why() {
        let failure = Failure::timeout(Duration::from_secs(90));
        assert_eq!(failure.text(), "timed out after 90s");
        assert_eq!(failure.cause(), FailureCause::Timeout);
        let failure = Failure::cancelled(CancelReason::LeaseLost);
        assert_eq!(failure.text(), "cancelled: the lease was lost");
        assert_eq!(failure.cause(), FailureCause::Cancelled);
    }
}
