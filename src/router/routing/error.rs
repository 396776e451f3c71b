use thiserror::Error;

use crate::task::NameError;

/// A router that no server can be built with.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum RouterError {
    /// It has no handler at all.
    #[error("the router has no handler: add one with `.task(handler)`")]
    NoHandler,
    /// It has handlers, and is for a server that runs none.
    #[error("the router has handlers, which a reaper does not run: give it one with hooks only")]
    Handlers,
    /// A handler's kind cannot be used.
    #[error(transparent)]
    Kind(#[from] NameError),
    /// Two handlers take the same kind.
    #[error("the router has two handlers for the kind {kind:?}: keep one")]
    #[non_exhaustive]
    TwoHandlers {
        /// The kind.
        kind: String,
    },
    /// It has two fallbacks.
    #[error("the router has two fallbacks: keep one")]
    TwoFallbacks,
    /// A handler asks for a state that the router does not have.
    #[error(
        "the handler for {handler} asks for `State<{state}>`, which the router does not have: add it with `.state(value)`"
    )]
    #[non_exhaustive]
    MissingState {
        /// The handler's kind in quotes, or `any other kind` for the fallback.
        handler: String,
        /// The type's name.
        state: &'static str,
    },
}
