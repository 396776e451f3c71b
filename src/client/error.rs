use std::sync::Arc;

use thiserror::Error;

use crate::broker::{BrokerError, RedisConfigError};
use crate::task::InvalidTask;

/// Why a client could not be made.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ClientError {
    /// The [`RedisConfig`](crate::RedisConfig) cannot be used.
    #[error(transparent)]
    Config(#[from] RedisConfigError),
    /// Redis cannot be reached, or refuses.
    #[error(transparent)]
    Broker(#[from] BrokerError),
}

/// Why a task was not, or perhaps not, enqueued.
#[derive(Debug, Clone, Error)]
#[non_exhaustive]
pub enum EnqueueError {
    /// The task itself is wrong; nothing was sent.
    #[error(transparent)]
    Invalid(Arc<InvalidTask>),
    /// Redis did not take it; it is not enqueued.
    #[error(transparent)]
    Refused(BrokerError),
    /// The answer was lost: it may be enqueued or not. Enqueue it again with [`NewTask::id`] set to
    /// this id: if it did get through and still exists, the repeat is recognised.
    ///
    /// [`NewTask::id`]: crate::NewTask::id
    #[error("whether task {id} was enqueued is unknown; enqueue it again with the same id")]
    #[non_exhaustive]
    OutcomeUnknown {
        /// The task's id.
        id: String,
        /// What happened to the answer.
        #[source]
        source: BrokerError,
    },
}

impl EnqueueError {
    pub(super) fn from_broker(error: &BrokerError, id: &str) -> Self {
        if error.outcome_unknown() {
            Self::OutcomeUnknown {
                id: id.to_owned(),
                source: error.clone(),
            }
        } else {
            Self::Refused(error.clone())
        }
    }
}

impl From<InvalidTask> for EnqueueError {
    fn from(error: InvalidTask) -> Self {
        Self::Invalid(Arc::new(error))
    }
}
