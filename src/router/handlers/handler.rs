use std::any::TypeId;

use serde::Serialize;

use crate::router::handlers::sealed::Sealed;
use crate::router::outcomes::{BoxError, Failure, Outcome};
use crate::task::encode;
use crate::user_code::{Contained, catch};

/// A function that runs tasks.
///
/// There is nothing to implement: it is any function or closure whose first argument is the task
/// and whose up to eight others are extractors ([`FromContext`](crate::handler::FromContext)).
///
/// ```
/// # use serde::{Deserialize, Serialize};
/// # use windlass::{Router, Task, TaskContext};
/// # #[derive(Serialize, Deserialize)]
/// # struct Resize { width: u32 }
/// # impl Task for Resize { const KIND: &'static str = "image:resize"; }
/// async fn resize(task: Resize, context: TaskContext) -> Result<u32, std::io::Error> {
///     Ok(task.width)
/// }
///
/// let router = Router::new().task(resize);
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot handle tasks",
    label = "not a handler",
    note = "a handler is a function whose first argument is the task, by value, followed by at most eight extractors",
    note = "the task is a `RawTask` in `.raw`, `.blocking_raw` and `.fallback`",
    note = "for example `async fn handle(task: MyTask, state: State<MyState>) -> Result<(), MyError>`",
    note = "a closure must name the types of its arguments, and what it captures must be `Send + Sync + 'static`"
)]
pub trait Handler<T, Args>: Sealed<(T, Args)> + Send + Sync + 'static {
    /// What the function returns: a future for `task`, a result for `blocking_task`.
    type Output;

    #[doc(hidden)]
    fn call(&self, task: T, args: Args) -> Self::Output;
}

macro_rules! handler {
    ($($argument:ident)*) => {
        impl<F, T, $($argument,)* O> Sealed<(T, ($($argument,)*))> for F
        where
            F: Fn(T, $($argument),*) -> O,
        {
        }

        #[diagnostic::do_not_recommend]
        impl<F, T, $($argument,)* O> Handler<T, ($($argument,)*)> for F
        where
            F: Fn(T, $($argument),*) -> O + Send + Sync + 'static,
        {
            type Output = O;

            #[allow(non_snake_case, reason = "a value is named after its type here")]
            fn call(&self, task: T, ($($argument,)*): ($($argument,)*)) -> O {
                self(task, $($argument),*)
            }
        }
    };
}

/// Expands a macro for every number of extractors that a handler can have.
macro_rules! each_arity {
    ($expand:ident) => {
        $expand!();
        $expand!(A);
        $expand!(A B);
        $expand!(A B C);
        $expand!(A B C D);
        $expand!(A B C D E);
        $expand!(A B C D E G);
        $expand!(A B C D E G H);
        $expand!(A B C D E G H I);
    };
}
pub(super) use each_arity;

each_arity!(handler);

/// What an asynchronous handler returns: a future of a [`HandlerResult`].
///
/// There is nothing to implement.
#[diagnostic::on_unimplemented(
    message = "a handler given to `.task`, `.raw` or `.fallback` must be asynchronous, and this one returns `{Self}`",
    label = "not an asynchronous handler",
    note = "make it an `async fn`, or register it with `.blocking_task` or `.blocking_raw`, which run it on a thread of its own"
)]
pub trait HandlerFuture: Future<Output = <Self as HandlerFuture>::Result> {
    /// What the handler returns in the end.
    type Result;
}

#[diagnostic::do_not_recommend]
impl<F: Future> HandlerFuture for F {
    type Result = F::Output;
}

/// What a handler returns in the end: a `Result`.
///
/// There is nothing to implement. `Ok(())` is success without a result; any other `Ok` value is
/// encoded as MessagePack and is the task's result, if the task has a retention. An `Err` is retried,
/// unless it carries another verdict (see [`TaskError`](crate::TaskError)).
#[diagnostic::on_unimplemented(
    message = "a handler cannot return `{Self}`",
    label = "not what a handler returns",
    note = "a handler returns `Result<R, E>`: `R` implements `serde::Serialize` (`()` is fine), and `E` is an error: one that implements `std::error::Error + Send + Sync`, `anyhow::Error`, a boxed error, or a `String`",
    note = "an `async fn` belongs into `.task` or `.raw`, a plain `fn` into `.blocking_task` or `.blocking_raw`"
)]
pub trait HandlerResult: Sealed<Outcome> {
    #[doc(hidden)]
    fn into_outcome(self, keeps_result: bool) -> Outcome;
}

impl<R, E> Sealed<Outcome> for Result<R, E> {}

impl<R, E> HandlerResult for Result<R, E>
where
    R: Serialize + 'static,
    E: Into<BoxError>,
{
    fn into_outcome(self, keeps_result: bool) -> Outcome {
        match self {
            Ok(result) => completed(result, keeps_result),
            Err(error) => Outcome::failed(error),
        }
    }
}

/// The work is done. So no panic of the result's type may end in another attempt.
fn completed<R: Serialize + 'static>(result: R, keeps_result: bool) -> Outcome {
    let result = Contained::new(result);
    if !keeps_result || TypeId::of::<R>() == TypeId::of::<()>() {
        return Outcome::completed();
    }
    match catch(|| encode(&*result)) {
        Ok(Ok(bytes)) => Outcome::Completed(Some(bytes)),
        Ok(Err(error)) => Failure::unencodable(error).into(),
        Err(panicked) => Failure::unencodable(panicked).into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::router::fixture::{Number, delivery, encoded, failure, result, routes};
    use crate::router::{Delivery, FailureCause, Router, TaskContext, Verdict};
    use crate::task::RawTask;

    #[tokio::test]
    async fn a_result_is_encoded_unless_it_is_nothing() {
        let router = Router::new().task(async |task: Number| Ok::<_, String>(task.0 * 2));
        let outcome = router.perform(Number(21)).await;
        assert!(outcome.is_completed());
        assert_eq!(result(&outcome), Some(42));
        assert!(outcome.result::<String>().is_err());

        let router = Router::new().task(async |_: Number| Ok::<_, String>(()));
        let outcome = router.perform(Number(1)).await;
        assert!(matches!(outcome, Outcome::Completed(None)));
    }

    #[tokio::test]
    async fn a_result_that_cannot_be_encoded_is_not_worth_another_attempt() {
        struct Stubborn;
        impl Serialize for Stubborn {
            fn serialize<S: serde::Serializer>(&self, _: S) -> Result<S::Ok, S::Error> {
                Err(serde::ser::Error::custom("I will not"))
            }
        }
        let router = Router::new().task(async |_: Number| Ok::<_, String>(Stubborn));
        let outcome = router.perform(Number(1)).await;
        let failure = failure(&outcome);
        assert_eq!(failure.verdict(), Verdict::SkipRetry);
        assert_eq!(failure.cause(), FailureCause::Unencodable);
        assert!(failure.text().ends_with("I will not"), "{failure}");
    }

    #[tokio::test]
    async fn a_panic_of_a_result_that_is_kept_is_not_worth_another_attempt() {
        struct Bomb;
        impl Serialize for Bomb {
            fn serialize<S: serde::Serializer>(&self, _: S) -> Result<S::Ok, S::Error> {
                panic!("encoded")
            }
        }
        let router = Router::new().task(async |_: Number| Ok::<_, String>(Bomb));
        let outcome = router.perform(Number(1)).await;
        let failure = failure(&outcome);
        assert_eq!(failure.verdict(), Verdict::SkipRetry);
        assert_eq!(failure.cause(), FailureCause::Unencodable);
        assert!(failure.text().ends_with(": encoded"), "{failure}");
    }

    #[tokio::test]
    async fn a_result_that_nobody_keeps_is_not_encoded_and_may_panic_when_dropped() {
        struct Bomb;
        impl Serialize for Bomb {
            fn serialize<S: serde::Serializer>(&self, _: S) -> Result<S::Ok, S::Error> {
                unreachable!("it is not encoded")
            }
        }
        impl Drop for Bomb {
            fn drop(&mut self) {
                panic!("dropped")
            }
        }
        fn blocking(_: Number) -> Result<Bomb, String> {
            Ok(Bomb)
        }
        let routers = [
            Router::new().task(async |_: Number| Ok::<_, String>(Bomb)),
            Router::new().blocking_task(blocking),
        ];
        for router in routers {
            let context = TaskContext::new(Delivery {
                keeps_result: false,
                ..delivery("number")
            });
            let run = routes(router).dispatch(context, encoded(&Number(1)));
            let outcome = run.await;
            assert!(matches!(outcome, Outcome::Completed(None)), "{outcome:?}");
        }
    }

    #[tokio::test]
    async fn a_payload_that_does_not_decode_is_not_worth_another_attempt() {
        let router = Router::new()
            .task(async |_: Number| -> Result<(), String> { unreachable!("it is not called") });
        let outcome = router.perform(RawTask::new("number", b"\xa3abc")).await;
        let failure = failure(&outcome);
        assert_eq!(failure.verdict(), Verdict::SkipRetry);
        assert_eq!(failure.cause(), FailureCause::Undecodable);
        assert!(
            failure.text().contains("could not be decoded: "),
            "{failure}"
        );
    }

    #[tokio::test]
    async fn a_raw_handler_gets_the_bytes_as_they_are() {
        async fn handler(task: RawTask, context: TaskContext) -> Result<Vec<u8>, anyhow::Error> {
            assert_eq!(task.kind, context.kind());
            Ok(task.payload)
        }
        let router = Router::new().raw("x:y", handler);
        let outcome = router.perform(RawTask::new("x:y", [0xc1, 0xff])).await;
        assert_eq!(result(&outcome), Some(vec![0xc1_u8, 0xff]));
    }

    #[tokio::test]
    async fn a_fallback_gets_the_kinds_without_a_handler() {
        let router = Router::new()
            .task(async |_: Number| Ok::<_, String>("number".to_owned()))
            .fallback(async |task: RawTask| Ok::<_, String>(task.kind));
        for kind in ["number", "other", "another"] {
            let payload = encoded(&Number(1));
            let outcome = router.perform(RawTask::new(kind, payload)).await;
            assert_eq!(result::<String>(&outcome).as_deref(), Some(kind));
        }
    }

    #[tokio::test]
    async fn a_kind_without_a_handler_is_a_failure_that_says_so() {
        let router = Router::new().task(async |_: Number| Ok::<_, String>(()));
        let outcome = router.perform(RawTask::new("other", [])).await;
        let failure = failure(&outcome);
        assert_eq!(failure.cause(), FailureCause::UnknownKind);
        assert_eq!(failure.text(), "no handler for tasks of kind \"other\"");
    }
}
