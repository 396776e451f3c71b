use futures::future::BoxFuture;
use thiserror::Error;

use crate::router::outcomes::BoxError;

/// One of the server's slots for handlers, of which it has as many as its concurrency. It is taken for
/// as long as anybody holds this.
pub(crate) trait Slot: Send + Sync {
    /// Stores how far the attempt has come.
    fn progress(&self, note: String) -> BoxFuture<'_, Result<(), ProgressError>>;
}

/// Why a handler's progress was not stored.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ProgressError {
    /// The attempt is over, or its lease was lost: the handler should stop.
    #[error("the task is no longer this handler's")]
    Ended,
    /// Redis could not be reached.
    #[error("the progress could not be stored")]
    Broker(#[source] BoxError),
}

#[cfg(any(test, feature = "testing"))]
impl Slot for () {
    fn progress(&self, _: String) -> BoxFuture<'_, Result<(), ProgressError>> {
        Box::pin(std::future::ready(Ok(())))
    }
}
