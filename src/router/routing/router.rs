use std::collections::HashMap;
use std::error::Error;
use std::fmt;
use std::sync::Arc;

use futures::FutureExt;

use crate::router::handlers::{
    Extractors, Handler, HandlerFuture, HandlerResult, States, TaskContext,
};
use crate::router::outcomes::Outcome;
use crate::router::routing::dead_letter::{self, DeadLetter, DeadLetterHook};
use crate::router::routing::middleware::{Middleware, Next};
use crate::router::routing::route::{Route, raw, typed};
use crate::task::{RawTask, Task};

/// The handlers of a worker, found by the kind of a task.
///
/// Nothing is checked before the server is built, which then refuses two handlers for one kind, a
/// kind that cannot be used, and a state that a handler asks for and the router lacks.
///
/// ```
/// use serde::{Deserialize, Serialize};
/// use windlass::{Router, State, Task, TaskContext};
///
/// #[derive(Serialize, Deserialize)]
/// struct Greet { name: String }
/// impl Task for Greet { const KIND: &'static str = "greet"; }
///
/// #[derive(Clone)]
/// struct Greeting(&'static str);
///
/// async fn greet(
///     task: Greet,
///     State(greeting): State<Greeting>,
///     context: TaskContext,
/// ) -> Result<String, std::io::Error> {
///     Ok(format!("{}, {}! (attempt {})", greeting.0, task.name, context.attempt()))
/// }
///
/// let router = Router::new().task(greet).state(Greeting("Hello"));
/// ```
#[derive(Clone, Default)]
#[must_use]
pub struct Router {
    pub(super) routes: Vec<(String, Route)>,
    pub(super) fallbacks: Vec<Route>,
    pub(super) states: States,
    pub(super) middleware: Vec<Arc<Middleware>>,
    pub(super) hooks: HashMap<String, Arc<DeadLetterHook>>,
}

impl Router {
    /// A router without handlers.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds an `async fn` that takes a [`Task`], followed by up to eight extractors
    /// ([`FromContext`](crate::handler::FromContext)). It gets the tasks of kind [`Task::KIND`].
    ///
    /// It returns `Result<R, E>`, where `R` is `()` or anything that implements
    /// [`Serialize`](serde::Serialize), and `E` is an error of any common kind: a
    /// [`std::error::Error`], a boxed one, an `anyhow::Error`, a `String`. An error is retried
    /// unless it carries another verdict (see [`TaskError`](crate::TaskError)); so is a panic.
    pub fn task<T, Args, H>(self, handler: H) -> Self
    where
        H: Handler<T, Args>,
        T: Task,
        Args: Extractors,
        H::Output: HandlerFuture + Send + 'static,
        <H::Output as HandlerFuture>::Result: HandlerResult,
    {
        self.route(T::KIND, Route::asynchronous(handler, typed::<T>))
    }

    /// Adds a plain `fn` that blocks, with arguments and result as in [`task`](Self::task).
    ///
    /// Each run gets a thread of its own, so that it can block for as long as it likes. A thread
    /// cannot be ended from outside: such a handler should look at
    /// [`TaskContext::is_cancelled`] now and then. One that goes on regardless after its timeout
    /// is given up: its task moves on, and its slot stays taken until it returns.
    ///
    /// ```
    /// # use serde::{Deserialize, Serialize};
    /// # use windlass::{Router, Task};
    /// # #[derive(Serialize, Deserialize)]
    /// # struct Pack { path: String }
    /// # impl Task for Pack { const KIND: &'static str = "file:pack"; }
    /// fn pack(task: Pack) -> Result<u64, std::io::Error> {
    ///     std::fs::copy(&task.path, format!("{}.bak", task.path))
    /// }
    ///
    /// let router = Router::new().blocking_task(pack);
    /// ```
    pub fn blocking_task<T, Args, H>(self, handler: H) -> Self
    where
        H: Handler<T, Args>,
        T: Task,
        Args: Extractors,
        H::Output: HandlerResult,
    {
        self.route(T::KIND, Route::blocking(handler, typed::<T>))
    }

    /// Adds an `async fn` for a kind, whose first argument is a [`RawTask`]: it gets the payload's
    /// bytes as they were enqueued.
    ///
    /// ```
    /// # use windlass::Router;
    /// # use windlass::task::RawTask;
    /// async fn import(task: RawTask) -> Result<(), std::str::Utf8Error> {
    ///     let json = std::str::from_utf8(&task.payload)?;
    ///     println!("{json}");
    ///     Ok(())
    /// }
    ///
    /// let router = Router::new().raw("legacy:import", import);
    /// ```
    pub fn raw<Args, H>(self, kind: impl Into<String>, handler: H) -> Self
    where
        H: Handler<RawTask, Args>,
        Args: Extractors,
        H::Output: HandlerFuture + Send + 'static,
        <H::Output as HandlerFuture>::Result: HandlerResult,
    {
        self.route(kind, Route::asynchronous(handler, raw))
    }

    /// Adds a plain `fn` that blocks, as [`blocking_task`](Self::blocking_task), for the tasks that
    /// [`raw`](Self::raw) is for.
    pub fn blocking_raw<Args, H>(self, kind: impl Into<String>, handler: H) -> Self
    where
        H: Handler<RawTask, Args>,
        Args: Extractors,
        H::Output: HandlerResult,
    {
        self.route(kind, Route::blocking(handler, raw))
    }

    /// Adds an `async fn` that gets the tasks of all kinds which have no handler of their own.
    pub fn fallback<Args, H>(mut self, handler: H) -> Self
    where
        H: Handler<RawTask, Args>,
        Args: Extractors,
        H::Output: HandlerFuture + Send + 'static,
        <H::Output as HandlerFuture>::Result: HandlerResult,
    {
        self.fallbacks.push(Route::asynchronous(handler, raw));
        self
    }

    /// Adds a value that handlers can ask for as [`State<S>`](crate::State). There is one of each
    /// type: a second one takes the place of the first.
    pub fn state<S: Clone + Send + Sync + 'static>(mut self, value: S) -> Self {
        self.states.insert(value);
        self
    }

    /// Wraps every handler of this router, the fallback too: those added before and after. What is
    /// added first is outermost. See [`Next`] for an example.
    pub fn middleware<F, Fut>(mut self, middleware: F) -> Self
    where
        F: Fn(TaskContext, Next) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Outcome> + Send + 'static,
    {
        self.middleware.push(Arc::new(move |context, next| {
            middleware(context, next).boxed()
        }));
        self
    }

    /// Runs `hook` for each task of this kind that is archived for good: at least once, by any server
    /// that has it, at most 8 at a time and 10 s each. What an operator archives runs no hook. A
    /// second hook for a kind replaces the first.
    ///
    /// A hook that fails, panics or takes too long is tried again after 30 s, and then after growing pauses
    /// of up to 10 min, as long as its task is in the archive. The archive's limits don't remove the task
    /// for [7 days](crate::server::ServerBuilder::keep_for_hooks), while some server has the hook.
    ///
    /// A server that stops gives the hooks that run 250 ms more, and then cuts them off: they are owed
    /// as before. A hook that blocks holds up others of its runtime: see
    /// [`on_dead_letter_blocking`](Self::on_dead_letter_blocking).
    ///
    /// ```
    /// use windlass::Router;
    /// use windlass::handler::DeadLetter;
    ///
    /// async fn tell(letter: DeadLetter) -> Result<(), std::io::Error> {
    ///     eprintln!("{} {} was given up: {}", letter.kind, letter.id, letter.reason);
    ///     Ok(())
    /// }
    ///
    /// let router = Router::new().on_dead_letter("email:send", tell);
    /// ```
    pub fn on_dead_letter<F, E>(
        mut self,
        kind: impl Into<String>,
        hook: impl Fn(DeadLetter) -> F + Send + Sync + 'static,
    ) -> Self
    where
        F: Future<Output = Result<(), E>> + Send + 'static,
        E: Into<Box<dyn Error + Send + Sync>>,
    {
        self.hooks
            .insert(kind.into(), dead_letter::asynchronous(hook));
        self
    }

    /// Runs a `hook` that blocks, as [`on_dead_letter`](Self::on_dead_letter) does: each run on a thread of
    /// its own.
    ///
    /// A thread cannot be ended from outside. A hook that goes on regardless after its 10 s is given up:
    /// it will be tried again, and takes one of the 8 slots until it returns.
    ///
    /// ```
    /// use windlass::Router;
    /// use windlass::handler::DeadLetter;
    ///
    /// fn note(letter: DeadLetter) -> Result<(), std::io::Error> {
    ///     std::fs::write(format!("/var/lib/dead/{}", letter.id), letter.payload)
    /// }
    ///
    /// let router = Router::new().on_dead_letter_blocking("email:send", note);
    /// ```
    pub fn on_dead_letter_blocking<E>(
        mut self,
        kind: impl Into<String>,
        hook: impl Fn(DeadLetter) -> Result<(), E> + Send + Sync + 'static,
    ) -> Self
    where
        E: Into<Box<dyn Error + Send + Sync>>,
    {
        self.hooks.insert(kind.into(), dead_letter::blocking(hook));
        self
    }

    fn route(mut self, kind: impl Into<String>, route: Route) -> Self {
        self.routes.push((kind.into(), route));
        self
    }
}

impl fmt::Debug for Router {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kinds: Vec<_> = self.routes.iter().map(|(kind, _)| kind).collect();
        f.debug_struct("Router")
            .field("kinds", &kinds)
            .field("fallback", &!self.fallbacks.is_empty())
            .field("states", &self.states)
            .field("middleware", &self.middleware.len())
            .finish()
    }
}
