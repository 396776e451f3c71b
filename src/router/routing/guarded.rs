use std::pin::Pin;
use std::task::{Context, Poll};

use futures::FutureExt;
use futures::future::{BoxFuture, ready};

use crate::router::outcomes::{Failure, Outcome};
use crate::user_code::{Contained, catch};

/// A user's future whose panics are failures, wherever they happen: where it is made, polled or
/// dropped.
pub(super) struct Guarded(Contained<BoxFuture<'static, Outcome>>);

impl Guarded {
    pub(super) fn start(
        make: impl FnOnce() -> Result<BoxFuture<'static, Outcome>, Failure>,
    ) -> Self {
        let made = catch(make).unwrap_or_else(|panicked| Err(Failure::from_panic(panicked)));
        let future = made.unwrap_or_else(|failure| ready(failure.into()).boxed());
        Self(Contained::new(future))
    }
}

impl Future for Guarded {
    type Output = Outcome;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Outcome> {
        catch(|| self.0.as_mut().poll(cx))
            .unwrap_or_else(|panicked| Poll::Ready(Failure::from_panic(panicked).into()))
    }
}

#[cfg(test)]
mod tests {
    use serde::{Deserialize, Deserializer, Serialize};

    use super::*;
    use crate::router::fixture::{Flag, Number, delivery, encoded, failure, routes};
    use crate::router::{FailureCause, FromContext, Next, Router, TaskContext, Verdict};
    use crate::task::Task;

    #[track_caller]
    fn assert_panicked(outcome: &Outcome, message: &str) {
        let failure = failure(outcome);
        assert_eq!(failure.cause(), FailureCause::Panic);
        assert_eq!(failure.verdict(), Verdict::Retry);
        let text = failure.text();
        let end = format!(": {message}");
        assert!(
            text.starts_with("panicked") && text.ends_with(&end),
            "{text}"
        );
    }

    async fn fine(_: Number) -> Result<(), String> {
        Ok(())
    }

    #[tokio::test]
    async fn a_panic_of_a_handler_is_a_failure_before_and_after_an_await() {
        let router =
            Router::new().task(async |_: Number| -> Result<(), String> { panic!("a {}", 1) });
        assert_panicked(&router.perform(Number(1)).await, "a 1");
        let router = Router::new().task(async |_: Number| -> Result<(), String> {
            tokio::task::yield_now().await;
            panic!("later")
        });
        assert_panicked(&router.perform(Number(1)).await, "later");
        fn not_even_a_future(_: Number) -> std::future::Ready<Result<(), String>> {
            panic!("at once")
        }
        let router = Router::new().task(not_even_a_future);
        assert_panicked(&router.perform(Number(1)).await, "at once");
    }

    #[tokio::test]
    async fn a_panic_of_middleware_is_a_failure() {
        async fn panics(_: TaskContext, _: Next) -> Outcome {
            panic!("middle")
        }
        let router = Router::new().task(fine).middleware(panics);
        assert_panicked(&router.perform(Number(1)).await, "middle");
    }

    #[tokio::test]
    async fn a_panic_of_an_extractor_is_a_failure() {
        struct Panics;
        impl FromContext for Panics {
            type Error = String;
            fn from_context(_: &TaskContext) -> Result<Self, String> {
                panic!("extractor")
            }
        }
        let router = Router::new().task(async |_: Number, _: Panics| Ok::<_, String>(()));
        assert_panicked(&router.perform(Number(1)).await, "extractor");
    }

    #[tokio::test]
    async fn a_panic_of_decoding_is_a_failure() {
        struct Bomb;
        impl Serialize for Bomb {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_unit()
            }
        }
        impl<'de> Deserialize<'de> for Bomb {
            fn deserialize<D: Deserializer<'de>>(_: D) -> Result<Self, D::Error> {
                panic!("decoded")
            }
        }
        impl Task for Bomb {
            const KIND: &'static str = "bomb";
        }
        let router = Router::new().task(async |_: Bomb| Ok::<_, String>(()));
        let context = TaskContext::new(delivery("bomb"));
        let outcome = routes(router).dispatch(context, encoded(&1)).await;
        assert_panicked(&outcome, "decoded");
    }

    #[test]
    fn a_panic_of_a_handler_that_is_dropped_halfway_goes_no_further() {
        struct Bomb(Flag);
        impl Drop for Bomb {
            fn drop(&mut self) {
                self.0.set();
                panic!("dropped")
            }
        }
        let dropped = Flag::default();
        let drops = dropped.clone();
        let handler = move |_: Number| {
            let bomb = Bomb(drops.clone());
            async move {
                std::future::pending::<()>().await;
                drop(bomb);
                Ok::<_, String>(())
            }
        };
        let router = Router::new().task(handler);
        assert!(router.perform(Number(1)).now_or_never().is_none());
        assert!(dropped.is_set());
    }
}
