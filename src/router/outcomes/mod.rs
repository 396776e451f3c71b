//! How an attempt ended: success with or without a result, or a failure with its error, its cause
//! and a verdict on the task. All of it are plain values. Nothing here runs a handler.

mod cancel_reason;
mod failure;
mod outcome;
mod task_error;
mod verdict;

pub use cancel_reason::CancelReason;
pub use failure::{Failure, FailureCause};
pub use outcome::Outcome;
pub use task_error::{TaskError, TaskResultExt};
pub use verdict::Verdict;

pub(super) type BoxError = Box<dyn std::error::Error + Send + Sync>;
