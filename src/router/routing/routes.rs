use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use crate::router::handlers::{States, TaskContext};
use crate::router::outcomes::Outcome;
use crate::router::routing::dead_letter::DeadLetterHook;
use crate::router::routing::middleware::{Middleware, Next};
use crate::router::routing::route::Route;

/// A router that has been checked: what a server runs tasks with. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Routes(Arc<Inner>);

pub(super) struct Inner {
    pub(super) routes: HashMap<String, Route>,
    pub(super) fallback: Option<Route>,
    pub(super) states: Arc<States>,
    pub(super) middleware: Arc<[Arc<Middleware>]>,
    pub(super) hooks: HashMap<String, Arc<DeadLetterHook>>,
}

impl Routes {
    pub(super) fn new(inner: Inner) -> Self {
        Self(Arc::new(inner))
    }

    /// Whether there is a handler for this kind; with a fallback, there is one for each.
    pub(crate) fn knows(&self, kind: &str) -> bool {
        self.route(kind).is_some()
    }

    /// The kinds that have a handler of their own, in no order.
    pub(crate) fn kinds(&self) -> impl Iterator<Item = &str> {
        self.0.routes.keys().map(String::as_str)
    }

    /// Runs a task through middleware and handler. Never panics, whatever a user's code does.
    /// Dropping the future ends an async handler; a blocking one runs on, and nobody waits for it.
    pub(crate) fn dispatch(
        &self,
        context: TaskContext,
        payload: Vec<u8>,
    ) -> impl Future<Output = Outcome> + Send + use<> {
        context.attach(&self.0.states);
        let handler = self.route(context.kind()).map(|route| route.run.clone());
        Next::new(self.0.middleware.clone(), handler, payload).run(context)
    }

    /// The dead-letter hook of a kind.
    pub(crate) fn hook(&self, kind: &str) -> Option<&Arc<DeadLetterHook>> {
        self.0.hooks.get(kind)
    }

    /// The kinds that have a dead-letter hook.
    pub(crate) fn hooked_kinds(&self) -> impl ExactSizeIterator<Item = &str> {
        self.0.hooks.keys().map(String::as_str)
    }

    fn route(&self, kind: &str) -> Option<&Route> {
        self.0.routes.get(kind).or(self.0.fallback.as_ref())
    }
}

impl fmt::Debug for Routes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.kinds()).finish()
    }
}
