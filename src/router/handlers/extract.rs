use std::convert::Infallible;
use std::error::Error as StdError;

use crate::router::handlers::context::TaskContext;
use crate::router::handlers::sealed::Sealed;
use crate::router::handlers::states::StateType;
use crate::router::outcomes::BoxError;

/// Something that a handler can ask for by naming it as an argument after the task.
///
/// Implement it for what several handlers would otherwise each build for themselves. It is called
/// anew for every attempt, in the order of the arguments, and must not block.
///
/// ```
/// use windlass::{State, TaskContext};
/// use windlass::handler::{FromContext, MissingState, StateType};
///
/// #[derive(Clone)]
/// struct Shops(Vec<String>);
///
/// /// The shop that a queue is named after.
/// struct Shop(String);
///
/// impl FromContext for Shop {
///     type Error = Box<dyn std::error::Error + Send + Sync>;
///
///     fn from_context(context: &TaskContext) -> Result<Self, Self::Error> {
///         let State(shops) = State::<Shops>::from_context(context)?;
///         let known = shops.0.into_iter().find(|shop| shop == context.queue());
///         known.map(Shop).ok_or_else(|| "no shop has this queue".into())
///     }
///
///     fn required_states() -> Vec<StateType> {
///         State::<Shops>::required_states()
///     }
/// }
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be an argument of a handler",
    label = "not an extractor",
    note = "after the task, a handler takes extractors: `State<S>`, `Option<State<S>>`, `TaskContext`, or a type that implements `windlass::handler::FromContext`"
)]
pub trait FromContext: Sized {
    /// Why the attempt does not have it. The attempt fails with this error, as if the handler had
    /// returned it.
    type Error: Into<Box<dyn StdError + Send + Sync>>;

    /// Takes it from the attempt that is about to run.
    fn from_context(context: &TaskContext) -> Result<Self, Self::Error>;

    /// The states that it takes, so that a router which lacks one is refused when the server is
    /// built, and not when the first task runs. Default: none.
    fn required_states() -> Vec<StateType> {
        Vec::new()
    }
}

impl FromContext for TaskContext {
    type Error = Infallible;

    fn from_context(context: &TaskContext) -> Result<Self, Infallible> {
        Ok(context.clone())
    }
}

/// The extractors of a handler: a tuple of at most eight.
///
/// Implemented for tuples of [`FromContext`] types; there is nothing to implement.
pub trait Extractors: Sized + Sealed<()> {
    #[doc(hidden)]
    fn extract(context: &TaskContext) -> Result<Self, BoxError>;

    #[doc(hidden)]
    fn required_states() -> Vec<StateType>;
}

macro_rules! extractors {
    ($($extractor:ident)*) => {
        impl<$($extractor),*> Sealed<()> for ($($extractor,)*) {}

        impl<$($extractor: FromContext),*> Extractors for ($($extractor,)*) {
            fn extract(_context: &TaskContext) -> Result<Self, BoxError> {
                Ok(($($extractor::from_context(_context).map_err(Into::into)?,)*))
            }

            fn required_states() -> Vec<StateType> {
                let states: &[Vec<StateType>] = &[$($extractor::required_states()),*];
                states.concat()
            }
        }
    };
}

super::handler::each_arity!(extractors);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::router::fixture::{Log, Number, failure, refused, result};
    use crate::router::{FailureCause, Router, State, TaskError, Verdict};

    /// Notes that it was extracted, and fails if its number is even.
    struct Odd<const N: u8>;

    impl<const N: u8> FromContext for Odd<N> {
        type Error = TaskError;

        fn from_context(context: &TaskContext) -> Result<Self, TaskError> {
            let State(log) = State::<Log>::from_context(context).map_err(TaskError::revoke)?;
            log.add(N.to_string());
            match N % 2 {
                1 => Ok(Self),
                _ => Err(TaskError::skip_retry(format!("{N} is even"))),
            }
        }

        fn required_states() -> Vec<StateType> {
            State::<Log>::required_states()
        }
    }

    #[tokio::test]
    async fn extractors_run_in_order_and_the_first_failure_ends_the_attempt() {
        async fn handler(
            _: Number,
            _: Odd<1>,
            _: Odd<3>,
            _: Odd<4>,
            _: Odd<5>,
            State(log): State<Log>,
        ) -> Result<(), String> {
            log.add("handler");
            Ok(())
        }
        let log = Log::default();
        let router = Router::new().task(handler).state(log.clone());
        let outcome = router.perform(Number(1)).await;
        assert_eq!(log.entries(), ["1", "3", "4"]);
        let failure = failure(&outcome);
        assert_eq!(failure.text(), "4 is even");
        assert_eq!(failure.verdict(), Verdict::SkipRetry);
        assert_eq!(failure.cause(), FailureCause::Error);
    }

    #[tokio::test]
    async fn a_handler_takes_eight_extractors() {
        type C = TaskContext;
        #[expect(clippy::too_many_arguments, reason = "the most that there may be")]
        async fn handler(
            task: Number,
            a: C,
            _: C,
            _: C,
            _: C,
            _: C,
            _: C,
            State(add): State<u32>,
            none: Option<State<u8>>,
        ) -> Result<String, String> {
            assert!(none.is_none());
            Ok(format!("{} {}", a.kind(), task.0 + add))
        }
        let router = Router::new().task(handler).state(1u32).state(2u32);
        let outcome = router.perform(Number(40)).await;
        assert_eq!(result::<String>(&outcome).as_deref(), Some("number 42"));
    }

    #[test]
    fn the_states_that_a_users_extractor_requires_are_checked() {
        async fn handler(_: Number, _: Odd<1>) -> Result<(), String> {
            Ok(())
        }
        let error = refused(Router::new().task(handler)).to_string();
        assert!(error.contains("Log"), "{error}");
    }
}
