//! How a task gets to its handler: the router that a user fills, the checked routes that a server
//! runs tasks with, and what surrounds each call: middleware, caught panics, and threads for blocking
//! handlers. Nothing here knows the server.

mod blocking;
mod build;
mod dead_letter;
mod error;
mod guarded;
mod middleware;
#[cfg(any(test, feature = "testing"))]
mod perform;
mod route;
mod router;
mod routes;

pub use dead_letter::DeadLetter;
pub(crate) use dead_letter::{DeadLetterHook, HookSlot};
pub use error::RouterError;
pub use middleware::Next;
pub use router::Router;
pub(crate) use routes::Routes;
