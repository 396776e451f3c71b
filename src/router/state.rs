use std::any::{Any, TypeId, type_name};
use std::fmt;
use std::ops::{Deref, DerefMut};
use std::sync::Arc;

use thiserror::Error;

use super::{FromContext, TaskContext};

/// A value that the router was given with [`Router::state`](super::Router::state), found by type.
///
/// Each attempt gets a clone, so put what is dear to clone into an [`Arc`]. A router that lacks a
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

    fn needs() -> Vec<StateType> {
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

/// The type of a state that an extractor needs: see [`FromContext::needs`].
#[derive(Debug, Clone, Copy)]
pub struct StateType {
    id: TypeId,
    name: &'static str,
}

impl StateType {
    /// That of `State<S>`.
    pub fn of<S: 'static>() -> Self {
        Self {
            id: TypeId::of::<S>(),
            name: type_name::<S>(),
        }
    }

    /// The type's name, as in the source.
    pub fn name(self) -> &'static str {
        self.name
    }
}

/// The states of a router. They are few, so looking at one after the other beats hashing.
#[derive(Clone, Default)]
pub(super) struct States(Vec<(StateType, Arc<dyn Any + Send + Sync>)>);

impl States {
    /// Adds a state in the place of an earlier one of its type.
    pub(super) fn insert<S: Send + Sync + 'static>(&mut self, state: S) {
        let this = StateType::of::<S>();
        self.0.retain(|(other, _)| other.id != this.id);
        self.0.push((this, Arc::new(state)));
    }

    pub(super) fn has(&self, state: StateType) -> bool {
        self.0.iter().any(|(other, _)| other.id == state.id)
    }

    fn get<S: 'static>(&self) -> Option<&S> {
        self.0.iter().find_map(|(_, state)| state.downcast_ref())
    }
}

impl fmt::Debug for States {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list()
            .entries(self.0.iter().map(|(state, _)| state.name))
            .finish()
    }
}
