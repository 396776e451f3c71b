use crate::broker::{BrokerError, Fault};

/// One round over all queues of a server: what Redis refuses for one queue must not keep the others
/// from being looked after.
#[derive(Default)]
pub(crate) struct QueueErrors(Option<BrokerError>);

impl QueueErrors {
    /// Notes how it went for one queue.
    ///
    /// # Errors
    /// Redis cannot be reached: then the other queues need not be tried.
    pub(crate) fn note(&mut self, queue: Result<(), BrokerError>) -> Result<(), BrokerError> {
        match queue {
            Err(error) if error.fault() == Fault::Reconnect => return Err(error),
            Err(error) => self.0 = Some(error),
            Ok(()) => {}
        }
        Ok(())
    }

    /// How it went in all: the last error noted.
    pub(crate) fn end(self) -> Result<(), BrokerError> {
        self.0.map_or(Ok(()), Err)
    }
}
