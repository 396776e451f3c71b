use std::sync::Arc;

use futures::FutureExt;
use futures::future::BoxFuture;
use tokio::sync::OwnedSemaphorePermit;

use crate::broker::{LeasedId, Queue, Settled, progress};
use crate::router::{ProgressError, Slot};
use crate::server::setup::connections::Connections;

/// A handler's place; a blocking handler that was given up still holds it.
pub(crate) struct HandlerSlot {
    pub(crate) _permit: Option<OwnedSemaphorePermit>,
    pub(crate) connections: Arc<Connections>,
    pub(crate) queue: Queue,
    pub(crate) leased: LeasedId,
}

impl Slot for HandlerSlot {
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
