use std::fmt;
use std::sync::Arc;

use futures::future::BoxFuture;

use crate::router::handlers::TaskContext;
use crate::router::outcomes::{Failure, Outcome};
use crate::router::routing::guarded::Guarded;
use crate::router::routing::route::Run;

/// Middleware with its types forgotten.
pub(super) type Middleware = dyn Fn(TaskContext, Next) -> BoxFuture<'static, Outcome> + Send + Sync;

/// What comes after a middleware: the next one, and in the end the handler.
///
/// ```
/// use windlass::{Router, TaskContext};
/// use windlass::handler::{Next, Outcome};
///
/// async fn log(context: TaskContext, next: Next) -> Outcome {
///     let start = std::time::Instant::now();
///     let outcome = next.run(context.clone()).await;
///     println!("{} took {:?}", context.id(), start.elapsed());
///     outcome
/// }
///
/// let router = Router::new().middleware(log);
/// ```
#[must_use = "the handler runs only if `next.run(context)` is awaited"]
pub struct Next {
    middleware: Arc<[Arc<Middleware>]>,
    /// How many of them have been called.
    called: usize,
    /// `None`: no handler takes the task's kind.
    handler: Option<Arc<Run>>,
    payload: Vec<u8>,
}

impl Next {
    pub(super) fn new(
        middleware: Arc<[Arc<Middleware>]>,
        handler: Option<Arc<Run>>,
        payload: Vec<u8>,
    ) -> Self {
        Self {
            middleware,
            called: 0,
            handler,
            payload,
        }
    }

    /// Runs the rest and says how it ended. Its panics are failures like others.
    pub async fn run(self, context: TaskContext) -> Outcome {
        self.start(context).await
    }

    fn start(mut self, context: TaskContext) -> Guarded {
        if let Some(middleware) = self.middleware.get(self.called).cloned() {
            self.called += 1;
            return Guarded::start(move || Ok(middleware(context, self)));
        }
        Guarded::start(move || match self.handler {
            Some(handler) => handler(context, self.payload),
            None => Err(Failure::unknown_kind(context.kind())),
        })
    }
}

impl fmt::Debug for Next {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Next").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use crate::router::fixture::{Log, Number, failure, failure_of};
    use crate::router::{FailureCause, Next, Outcome, Router, State, TaskContext};
    use crate::task::RawTask;

    fn note(
        log: &Log,
        name: &'static str,
    ) -> impl Fn(TaskContext, Next) -> super::BoxFuture<'static, Outcome> + use<> {
        let log = log.clone();
        move |context, next| {
            let log = log.clone();
            Box::pin(async move {
                log.add(format!("{name} before"));
                let outcome = next.run(context).await;
                log.add(format!("{name} after"));
                outcome
            })
        }
    }

    #[tokio::test]
    async fn the_first_middleware_is_outermost_and_all_wrap_every_handler() {
        async fn handler(_: Number, State(log): State<Log>) -> Result<(), String> {
            log.add("handler");
            Ok(())
        }
        async fn fallback(_: RawTask, State(log): State<Log>) -> Result<(), String> {
            log.add("handler");
            Ok(())
        }
        let log = Log::default();
        let router = Router::new()
            .middleware(note(&log, "a"))
            .task(handler)
            .fallback(fallback)
            .middleware(note(&log, "b"))
            .state(log.clone());
        let order = ["a before", "b before", "handler", "b after", "a after"];
        assert!(router.perform(Number(1)).await.is_completed());
        assert_eq!(log.entries(), order);
        assert!(router.perform(RawTask::new("x", [])).await.is_completed());
        assert_eq!(log.entries()[5..], order);
    }

    #[tokio::test]
    async fn middleware_may_replace_what_comes_after_it() {
        async fn skip(_: TaskContext, _: Next) -> Outcome {
            Outcome::completed()
        }
        async fn invert(context: TaskContext, next: Next) -> Outcome {
            match next.run(context).await {
                Outcome::Completed(_) => Outcome::failed("it went well"),
                _ => Outcome::completed(),
            }
        }
        let router = Router::new()
            .task(async |_: Number| -> Result<(), String> { unreachable!("it is not called") })
            .middleware(invert)
            .middleware(skip);
        assert_eq!(failure_of(&router, Number(1)).await, "it went well");
    }

    #[tokio::test]
    async fn middleware_sees_a_panic_below_it_as_a_failure() {
        async fn seen(context: TaskContext, next: Next) -> Outcome {
            let outcome = next.run(context).await;
            let failure = failure(&outcome);
            assert_eq!(failure.cause(), FailureCause::Panic);
            Outcome::failed(format!("seen: {failure}"))
        }
        async fn broken(_: TaskContext, _: Next) -> Outcome {
            panic!("in the middle")
        }
        let router = Router::new()
            .task(async |_: Number| -> Result<(), String> { panic!("at the end") })
            .middleware(seen);
        let text = failure_of(&router, Number(1)).await;
        assert!(text.starts_with("seen: panicked"), "{text}");
        assert!(text.ends_with(": at the end"), "{text}");
        let router = router.middleware(broken);
        let text = failure_of(&router, Number(1)).await;
        assert!(text.ends_with(": in the middle"), "{text}");
    }
}
