use thiserror::Error;

use crate::broker::{BrokerError, RedisConfigError};
use crate::task::{NameError, PayloadError};

/// Why an operator's call failed.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum InspectError {
    /// The [`RedisConfig`](crate::RedisConfig) cannot be used.
    #[error(transparent)]
    Config(#[from] RedisConfigError),
    /// The queue or id cannot be one.
    #[error(transparent)]
    Name(#[from] NameError),
    /// The new payload cannot be stored.
    #[error(transparent)]
    Payload(#[from] PayloadError),
    /// Redis could not be asked.
    #[error(transparent)]
    Broker(#[from] BrokerError),
}
