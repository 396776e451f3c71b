//! What a handler is and what it gets: the traits of its function, its result and its extractors,
//! shared state, and the context of the attempt that runs. Nothing here knows which handler a task
//! gets.

mod cancellation;
mod context;
mod extract;
mod handler;
mod sealed;
mod slot;
mod state;
mod states;

pub(crate) use cancellation::Cancellation;
pub(crate) use context::Delivery;
pub use context::TaskContext;
pub use extract::{Extractors, FromContext};
pub use handler::{Handler, HandlerFuture, HandlerResult};
pub use slot::ProgressError;
pub(crate) use slot::Slot;
pub use state::{MissingState, State};
pub use states::StateType;
pub(super) use states::States;
