//! A worker's handlers: found by the kind of a task, called with what they ask for, wrapped in
//! middleware. Nothing here knows Redis or the server.

mod blocking;
mod build;
mod cancellation;
mod context;
mod cut;
mod dead_letter;
mod error;
mod extract;
mod failure;
#[cfg(test)]
mod fixture;
mod guarded;
mod handler;
mod middleware;
mod outcome;
mod panic;
#[cfg(any(test, feature = "testing"))]
mod perform;
mod route;
#[allow(clippy::module_inception, reason = "the router is the main thing here")]
mod router;
mod routes;
mod slot;
mod state;
mod task_error;
mod verdict;

pub use cancellation::CancelReason;
pub(crate) use cancellation::Cancellation;
pub(crate) use context::Delivery;
pub use context::TaskContext;
pub use dead_letter::DeadLetter;
pub(crate) use dead_letter::DeadLetterHook;
pub use error::RouterError;
pub use extract::{Arguments, FromContext};
pub(crate) use failure::error_text;
pub use failure::{Failure, FailureCause};
pub use handler::{Handler, HandlerFuture, HandlerResult};
pub use middleware::Next;
pub use outcome::Outcome;
pub(crate) use panic::{Panicked, catch};
pub use router::Router;
pub(crate) use routes::Routes;
pub use slot::ProgressError;
pub(crate) use slot::Slot;
pub use state::{MissingState, State, StateType};
pub use task_error::{TaskError, TaskResultExt};
pub use verdict::Verdict;

type BoxError = Box<dyn std::error::Error + Send + Sync>;
