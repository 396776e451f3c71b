//! The producer: puts tasks into queues.

mod builder;
mod endings;
mod enqueue;
mod error;
mod handle;
mod outcome;
mod send;
mod wait;

pub use builder::ClientBuilder;
pub use enqueue::Enqueue;
pub use error::{ClientError, EnqueueError};
pub use handle::Client;
pub use outcome::{AlreadyExists, EnqueueOutcome, Enqueued};
pub use wait::{WaitError, WaitOutcome};
