use thiserror::Error;

use crate::broker::BrokerError;
use crate::task::{NameError, PayloadError};

/// Why an operator's call failed.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum InspectError {
    /// The prefix, queue or id cannot be one.
    #[error(transparent)]
    Name(#[from] NameError),
    /// The new payload cannot be stored.
    #[error(transparent)]
    Payload(#[from] PayloadError),
    /// Redis could not be asked.
    #[error(transparent)]
    Broker(#[from] BrokerError),
}
