use std::sync::Arc;
use std::time::SystemTime;

use futures::FutureExt;
use futures::future::BoxFuture;
use serde::de::DeserializeOwned;

use super::guarded::Guarded;
use super::{BoxError, Outcome, Router};
use crate::task::{PayloadError, decode};

/// A task that was given up for good, as its dead-letter hook sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct DeadLetter {
    /// The task's id.
    pub id: String,
    /// Its kind.
    pub kind: String,
    /// Its queue.
    pub queue: String,
    /// Its payload, as it was enqueued.
    pub payload: Vec<u8>,
    /// How many of its tries failed before the last one.
    pub retried: u32,
    /// Why it was given up, as in the record: `retries_exhausted`, `lease_expired`,
    /// `deadline_passed`, `skipped`, `undecodable`, `cancelled` or `unknown_kind`.
    pub reason: String,
    /// What it failed with last; empty when it never ran.
    pub error: String,
    /// When it was given up, by Redis' clock.
    pub died_at: SystemTime,
}

impl DeadLetter {
    /// The task itself.
    ///
    /// # Errors
    /// The payload is not that of a `T`.
    pub fn task<T: DeserializeOwned>(&self) -> Result<T, PayloadError> {
        decode(&self.payload)
    }
}

/// A dead-letter hook, whatever its function's type. Its panics are failures.
pub(crate) type DeadLetterHook = dyn Fn(DeadLetter) -> BoxFuture<'static, Outcome> + Send + Sync;

impl Router {
    /// Runs `hook` for each task of this kind that is archived for good: at least once, by any server
    /// that has it, at most 8 at a time and 10 s each. A hook that fails, panics or takes too long is
    /// tried again for an hour. What an operator archives runs no hook. A second hook for a kind
    /// replaces the first.
    ///
    /// ```
    /// use windlass::{DeadLetter, Router};
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
        E: Into<BoxError>,
    {
        let hook: Arc<DeadLetterHook> = Arc::new(move |letter| {
            let run = || {
                let outcome = hook(letter).map(|ended| match ended {
                    Ok(()) => Outcome::completed(),
                    Err(error) => Outcome::failed(error),
                });
                Ok(outcome.boxed())
            };
            Guarded::start(run).boxed()
        });
        self.hooks.insert(kind.into(), hook);
        self
    }
}
