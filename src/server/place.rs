use std::sync::Arc;

use futures::FutureExt;
use futures::future::BoxFuture;
use tokio::sync::OwnedSemaphorePermit;

use super::connections::Connections;
use crate::broker::{LeasedId, Queue, Settled, progress};
use crate::router::{ProgressError, Slot};

/// A handler's place; a blocking handler that was given up still holds it.
pub(super) struct Place {
    pub(super) _permit: Option<OwnedSemaphorePermit>,
    pub(super) connections: Arc<Connections>,
    pub(super) queue: Queue,
    pub(super) leased: LeasedId,
}

impl Slot for Place {
    fn progress(&self, note: String) -> BoxFuture<'_, Result<(), ProgressError>> {
        async move {
            match progress(&self.connections.settle, &self.queue, &self.leased, &note).await {
                Ok(Settled::Done) => Ok(()),
                Ok(_) => Err(ProgressError::Ended),
                Err(error) => Err(ProgressError::Broker(Box::new(error))),
            }
        }
        .boxed()
    }
}
