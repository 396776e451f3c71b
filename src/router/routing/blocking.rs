use std::thread;

use futures::FutureExt;
use futures::future::BoxFuture;
use tokio::runtime::Handle;
use tokio::sync::oneshot;
use tracing::Span;

use crate::router::outcomes::{Failure, Outcome};
use crate::user_code::{catch, truncate};

/// Runs a blocking handler or hook on a thread of its own, which is named after the kind.
///
/// Nobody waits for the thread: whoever drops the future gives the function up, which then runs on
/// to its end and keeps its slot until then.
pub(super) fn on_thread(
    kind: &str,
    slot: impl Send + 'static,
    function: impl FnOnce() -> Outcome + Send + 'static,
) -> Result<BoxFuture<'static, Outcome>, Failure> {
    let (sender, receiver) = oneshot::channel();
    let name = thread_name(kind);
    // So that it can spawn on the server's runtime and `block_on` its futures.
    let runtime = Handle::try_current().ok();
    // So that what it logs names its task.
    let span = Span::current();
    let run = move || {
        let _entered = (runtime.as_ref().map(Handle::enter), span.enter());
        let outcome = catch(function).unwrap_or_else(|p| Failure::from_panic(p).into());
        // First, so that whoever has the outcome finds the slot free.
        drop(slot);
        // An error means that it was given up, and nobody waits for its outcome.
        let _ = sender.send(outcome);
    };
    match thread::Builder::new().name(name).spawn(run) {
        Ok(_detached) => Ok(receiver.map(received).boxed()),
        Err(error) => Err(Failure::not_started(error)),
    }
}

fn received(outcome: Result<Outcome, oneshot::error::RecvError>) -> Outcome {
    // The thread catches every panic and then sends, so this error cannot occur.
    outcome.unwrap_or_else(Outcome::failed)
}

/// What operating systems take as a thread's name: no NUL, and not too long (the longest limit is
/// macOS' 63 bytes; Linux shows the first 15).
fn thread_name(kind: &str) -> String {
    truncate(&kind.replace('\0', ""), 63).to_owned()
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Weak};

    use futures::future::BoxFuture;

    use super::*;
    use crate::router::fixture::{
        Flag, Number, delivery, encoded, failure, failure_of, result, routes,
    };
    use crate::router::{Delivery, FailureCause, ProgressError, Router, Slot, TaskContext};
    use crate::task::RawTask;

    #[tokio::test]
    async fn a_blocking_handler_runs_on_a_thread_named_after_its_kind() {
        fn handler(task: Number, context: TaskContext) -> Result<(String, u32), String> {
            assert_eq!(context.kind(), "number");
            let name = thread::current().name().map(str::to_owned);
            Ok((name.ok_or("no name")?, task.0))
        }
        let router = Router::new().blocking_task(handler);
        let outcome = router.perform(Number(7)).await;
        assert_eq!(result(&outcome), Some(("number".to_owned(), 7)));
    }

    #[tokio::test]
    async fn a_blocking_handler_can_use_the_runtime() {
        fn handler(_: RawTask) -> Result<u8, String> {
            let runtime = Handle::try_current().map_err(|e| e.to_string())?;
            runtime
                .block_on(tokio::spawn(async { 5 }))
                .map_err(|e| e.to_string())
        }
        let router = Router::new().blocking_raw("x", handler);
        let outcome = router.perform(RawTask::new("x", [])).await;
        assert_eq!(result::<u8>(&outcome), Some(5), "{outcome:?}");
    }

    #[tokio::test]
    async fn what_fails_on_a_thread_is_a_failure_here() {
        fn handler(task: Number) -> Result<(), String> {
            match task.0 {
                0 => panic!("zero"),
                n => Err(format!("{n}")),
            }
        }
        let router = Router::new().blocking_task(handler);
        assert_eq!(failure_of(&router, Number(3)).await, "3");
        let outcome = router.perform(Number(0)).await;
        let panicked = failure(&outcome);
        assert_eq!(panicked.cause(), FailureCause::Panic);
        assert!(panicked.text().ends_with(": zero"), "{panicked}");
        let outcome = router.perform(RawTask::new("number", [])).await;
        assert_eq!(failure(&outcome).cause(), FailureCause::Undecodable);
    }

    #[tokio::test]
    async fn a_handler_that_was_given_up_keeps_its_slot_until_it_returns() {
        struct Freed(Flag);
        impl Slot for Freed {
            fn progress(&self, _: String) -> BoxFuture<'_, Result<(), ProgressError>> {
                unreachable!("the handler notes no progress")
            }
        }
        impl Drop for Freed {
            fn drop(&mut self) {
                self.0.set();
            }
        }
        let (started, go_on, freed) = (Flag::default(), Flag::default(), Flag::default());
        let (starts, may_go_on) = (started.clone(), go_on.clone());
        let handler = move |_: Number| {
            starts.set();
            may_go_on.wait();
            Ok::<_, String>(())
        };
        let routes = routes(Router::new().blocking_task(handler));
        let slot: Arc<dyn Slot> = Arc::new(Freed(freed.clone()));
        let weak: Weak<dyn Slot> = Arc::downgrade(&slot);
        let context = TaskContext::new(Delivery {
            slot: Some(weak.clone()),
            ..delivery("number")
        });
        let run = routes.dispatch(context, encoded(&Number(1)));
        assert!(run.now_or_never().is_none(), "polled once, and dropped");
        started.wait();
        drop(slot);
        assert_eq!(weak.strong_count(), 1);
        go_on.set();
        freed.wait();
    }

    #[tokio::test]
    async fn the_slot_is_free_when_the_outcome_is_there() {
        let router = Router::new().blocking_task(|_: Number| Ok::<_, String>(()));
        let routes = routes(router);
        let slot: Arc<dyn Slot> = Arc::new(());
        let context = TaskContext::new(Delivery {
            slot: Some(Arc::downgrade(&slot)),
            ..delivery("number")
        });
        let outcome = routes.dispatch(context, encoded(&Number(1))).await;
        assert!(outcome.is_completed());
        assert_eq!(Arc::strong_count(&slot), 1);
    }

    #[test]
    fn a_thread_gets_a_legal_name() {
        assert_eq!(thread_name("a\0b"), "ab");
        assert_eq!(thread_name(&format!("x{}", "ü".repeat(100))).len(), 63);
        let thread = thread::Builder::new().name(thread_name("\0ü"));
        assert!(thread.spawn(|| ()).is_ok_and(|it| it.join().is_ok()));
    }
}
