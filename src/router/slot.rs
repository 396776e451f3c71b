use futures::future::BoxFuture;
use thiserror::Error;

use super::BoxError;

/// The place in a server that a run occupies: as long as somebody holds it, it is taken.
pub(crate) trait Slot: Send + Sync {
    /// Notes how far the run has come.
    fn progress(&self, note: String) -> BoxFuture<'_, Result<(), ProgressError>>;
}

/// Why a handler's progress was not noted.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ProgressError {
    /// The attempt is over, or its lease was lost: the handler should stop.
    #[error("the task is not this handler's any more")]
    Ended,
    /// Redis could not be told.
    #[error("the progress could not be noted")]
    Broker(#[source] BoxError),
}

#[cfg(any(test, feature = "testing"))]
impl Slot for () {
    fn progress(&self, _: String) -> BoxFuture<'_, Result<(), ProgressError>> {
        Box::pin(std::future::ready(Ok(())))
    }
}
