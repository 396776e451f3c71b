//! The producer: puts tasks into queues.

mod batch;
mod builder;
mod bulk;
mod endings;
mod enqueue;
mod error;
mod handle;
mod joiner;
mod outcome;
mod wait;

pub use builder::ClientBuilder;
pub use enqueue::Enqueue;
pub use error::{ClientError, EnqueueError};
pub use handle::Client;
pub use outcome::{AlreadyExists, EnqueueOutcome, Enqueued};
pub use wait::{WaitError, Waited};
