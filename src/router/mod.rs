//! A worker's handlers: found by the kind of a task, called with what they ask for, wrapped in
//! middleware. Nothing here knows Redis or the server.
//!
//! Three rooms, each of which uses only those before it: `outcomes` (how an attempt ended),
//! `handlers` (what a handler is and what it gets) and `routing` (how a task gets to its handler).

#[cfg(test)]
mod fixture;
mod handlers;
mod outcomes;
mod routing;

pub(crate) use handlers::{Cancellation, Delivery, Slot};
pub use handlers::{
    Extractors, FromContext, Handler, HandlerFuture, HandlerResult, MissingState, ProgressError,
    State, StateType, TaskContext,
};
pub use outcomes::{
    CancelReason, Failure, FailureCause, Outcome, TaskError, TaskResultExt, Verdict,
};
pub use routing::{DeadLetter, Next, Router, RouterError};
pub(crate) use routing::{DeadLetterHook, HookSlot, Routes};
