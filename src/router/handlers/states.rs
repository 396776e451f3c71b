use std::any::{Any, TypeId, type_name};
use std::fmt;
use std::sync::Arc;

/// The type of a state that an extractor takes: see [`FromContext::required_states`](super::FromContext::required_states).
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
pub(in crate::router) struct States(Vec<(StateType, Arc<dyn Any + Send + Sync>)>);

impl States {
    /// Adds a state, which replaces an earlier one of its type.
    pub(in crate::router) fn insert<S: Send + Sync + 'static>(&mut self, state: S) {
        let this = StateType::of::<S>();
        self.0.retain(|(other, _)| other.id != this.id);
        self.0.push((this, Arc::new(state)));
    }

    pub(in crate::router) fn has(&self, state: StateType) -> bool {
        self.0.iter().any(|(other, _)| other.id == state.id)
    }

    pub(super) fn get<S: 'static>(&self) -> Option<&S> {
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
