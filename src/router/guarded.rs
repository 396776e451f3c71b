use std::pin::Pin;
use std::task::{Context, Poll};

use futures::future::BoxFuture;

use super::{Failure, Outcome, catch};

/// A user's future whose panics are failures, wherever they happen: where it is made, polled or
/// dropped.
pub(super) enum Guarded {
    Running(BoxFuture<'static, Outcome>),
    Ended(Option<Outcome>),
}

impl Guarded {
    pub(super) fn start(
        make: impl FnOnce() -> Result<BoxFuture<'static, Outcome>, Failure>,
    ) -> Self {
        match catch(make) {
            Ok(Ok(future)) => Self::Running(future),
            Ok(Err(failure)) => Self::Ended(Some(failure.into())),
            Err(panicked) => Self::Ended(Some(Failure::from_panic(panicked).into())),
        }
    }
}

impl Future for Guarded {
    type Output = Outcome;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Outcome> {
        match &mut *self {
            Self::Running(future) => catch(|| future.as_mut().poll(cx))
                .unwrap_or_else(|panicked| Poll::Ready(Failure::from_panic(panicked).into())),
            Self::Ended(outcome) => outcome.take().map_or(Poll::Pending, Poll::Ready),
        }
    }
}

impl Drop for Guarded {
    fn drop(&mut self) {
        if let Self::Running(future) = self {
            // A box of nothing, which allocates nothing.
            let future = std::mem::replace(future, Box::pin(std::future::pending()));
            // Nobody is left to be told, and the panic hook has told it.
            let _ = catch(|| drop(future));
        }
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;
    use serde::{Deserialize, Deserializer, Serialize};

    use super::*;
    use crate::router::fixture::{Flag, Number, delivery, encoded, failure, failure_of, routes};
    use crate::router::{FailureCause, FromContext, Next, Router, TaskContext, Verdict};
    use crate::task::Task;

    #[track_caller]
    fn assert_panicked(outcome: &Outcome, message: &str) {
        let failure = failure(outcome);
        assert_eq!(failure.cause(), FailureCause::Panic);
        assert_eq!(failure.verdict(), Verdict::Retry);
        let text = failure.text();
        let (place, said) = text.split_once(": ").unwrap_or((&text, ""));
        assert_eq!(said, message);
        let prefix = format!("panicked at {}:", file!());
        assert!(place.starts_with(&prefix), "{place}");
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
    async fn a_panic_of_decoding_or_encoding_is_a_failure() {
        struct Bomb;
        impl Serialize for Bomb {
            fn serialize<S: serde::Serializer>(&self, _: S) -> Result<S::Ok, S::Error> {
                panic!("packed")
            }
        }
        impl<'de> Deserialize<'de> for Bomb {
            fn deserialize<D: Deserializer<'de>>(_: D) -> Result<Self, D::Error> {
                panic!("unpacked")
            }
        }
        impl Task for Bomb {
            const KIND: &'static str = "bomb";
        }
        let router = Router::new()
            .task(async |_: Bomb| Ok::<_, String>(()))
            .task(async |_: Number| Ok::<_, String>(Bomb));
        let routes = routes(router);
        let run = |kind| {
            let payload = encoded(&1);
            routes.dispatch(TaskContext::new(delivery(kind)), payload)
        };
        assert_panicked(&run("bomb").await, "unpacked");
        assert_panicked(&run("number").await, "packed");
    }

    #[tokio::test]
    async fn a_panic_without_text_has_a_text() {
        struct Bomb;
        impl Drop for Bomb {
            fn drop(&mut self) {
                panic!("dropped")
            }
        }
        let router = Router::new()
            .task(async |_: Number| -> Result<(), String> { std::panic::panic_any(Bomb) });
        let text = failure_of(&router, Number(1)).await;
        assert!(text.ends_with(": a panic without a message"), "{text}");
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
