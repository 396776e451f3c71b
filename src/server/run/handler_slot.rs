use std::sync::Arc;

use futures::FutureExt;
use futures::future::BoxFuture;
use tokio::sync::OwnedSemaphorePermit;

use crate::broker::progress;
use crate::router::{ProgressError, Slot};
use crate::server::run::attempt::Attempt;
use crate::server::setup::connections::Connections;

/// One of the server's slots, which a handler holds; a blocking handler that was given up still does.
pub(crate) struct HandlerSlot {
    pub(crate) _permit: Option<OwnedSemaphorePermit>,
    pub(crate) connections: Arc<Connections>,
    pub(crate) attempt: Arc<Attempt>,
}

impl Slot for HandlerSlot {
    fn progress(&self, note: String) -> BoxFuture<'_, Result<(), ProgressError>> {
        let Attempt { queue, leased, .. } = &*self.attempt;
        async move {
            match progress(&self.connections.settle, queue, leased, &note).await {
                Ok(true) => Ok(()),
                Ok(false) => Err(ProgressError::Ended),
                Err(error) => Err(ProgressError::Broker(Box::new(error))),
            }
        }
        .boxed()
    }
}
