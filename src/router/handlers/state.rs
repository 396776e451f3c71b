use std::any::type_name;
use std::ops::{Deref, DerefMut};

use thiserror::Error;

use crate::router::handlers::context::TaskContext;
use crate::router::handlers::extract::FromContext;
use crate::router::handlers::states::{StateType, States};

/// A value that the router was given with [`Router::state`](crate::Router::state), found by type.
///
/// Each attempt gets a clone, so put what is costly to clone into an
/// [`Arc`](std::sync::Arc). A router that lacks a
/// state which a handler asks for is refused when the server is built; a handler that can do
/// without takes `Option<State<S>>`.
///
/// ```
/// # use serde::{Deserialize, Serialize};
/// # use windlass::{Router, State, Task};
/// # #[derive(Serialize, Deserialize)]
/// # struct SendEmail { to: String }
/// # impl Task for SendEmail { const KIND: &'static str = "email:send"; }
/// #[derive(Clone)]
/// struct Smtp { host: String }
///
/// async fn send_email(task: SendEmail, State(smtp): State<Smtp>) -> Result<(), String> {
///     println!("to {} by {}", task.to, smtp.host);
///     Ok(())
/// }
///
/// let router = Router::new().task(send_email).state(Smtp { host: "localhost".into() });
/// ```
#[derive(Debug, Clone, Copy, Default)]
pub struct State<S>(pub S);

impl<S> Deref for State<S> {
    type Target = S;

    fn deref(&self) -> &S {
        &self.0
    }
}

impl<S> DerefMut for State<S> {
    fn deref_mut(&mut self) -> &mut S {
        &mut self.0
    }
}

impl<S: Clone + Send + Sync + 'static> FromContext for State<S> {
    type Error = MissingState;

    fn from_context(context: &TaskContext) -> Result<Self, MissingState> {
        let state = context.states().and_then(States::get::<S>);
        state.cloned().map(State).ok_or(MissingState {
            state: type_name::<S>(),
        })
    }

    fn required_states() -> Vec<StateType> {
        vec![StateType::of::<S>()]
    }
}

impl<S: Clone + Send + Sync + 'static> FromContext for Option<State<S>> {
    type Error = std::convert::Infallible;

    fn from_context(context: &TaskContext) -> Result<Self, Self::Error> {
        Ok(State::from_context(context).ok())
    }
}

/// A state was asked for that the router does not have.
///
/// Handlers do not meet it, because such a router is refused when the server is built; middleware
/// that calls [`FromContext::from_context`] itself can.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("the router has no state of type `{state}`: add it with `.state(value)`")]
#[non_exhaustive]
pub struct MissingState {
    /// The type that was asked for.
    pub state: &'static str,
}
