use serde::de::DeserializeOwned;

use crate::router::outcomes::BoxError;
use crate::router::outcomes::failure::Failure;
use crate::task::{PayloadError, decode};

/// How an attempt ended: what middleware sees, and may replace.
#[derive(Debug)]
#[non_exhaustive]
pub enum Outcome {
    /// The handler returned `Ok`. Holds the encoded result; `None` if that was `()`, or if the task has
    /// no retention, so that nobody keeps it.
    Completed(Option<Vec<u8>>),
    /// The handler returned `Err`, panicked, was cancelled, or was never reached.
    Failed(Failure),
}

impl Outcome {
    /// Success without a result.
    pub fn completed() -> Self {
        Self::Completed(None)
    }

    /// A failure with this error, and the verdict that it carries (see
    /// [`TaskError`](crate::TaskError)).
    pub fn failed(error: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Self {
        let error: BoxError = error.into();
        Self::Failed(Failure::from_error(error))
    }

    /// Whether the attempt succeeded.
    pub fn is_completed(&self) -> bool {
        matches!(self, Self::Completed(_))
    }

    /// What went wrong, if anything did.
    pub fn failure(&self) -> Option<&Failure> {
        match self {
            Self::Completed(_) => None,
            Self::Failed(failure) => Some(failure),
        }
    }

    /// The decoded result; `None` if the attempt failed, the handler returned `()`, or nobody keeps the
    /// result.
    ///
    /// # Errors
    ///
    /// The handler's result is not an `R`.
    pub fn result<R: DeserializeOwned>(&self) -> Result<Option<R>, PayloadError> {
        match self {
            Self::Completed(Some(bytes)) => decode(bytes).map(Some),
            _ => Ok(None),
        }
    }
}

impl From<Failure> for Outcome {
    fn from(failure: Failure) -> Self {
        Self::Failed(failure)
    }
}
