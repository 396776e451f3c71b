//! Waiting for things to happen, with a limit.

use std::fmt::Debug;
use std::future::Future;
use std::panic::Location;
use std::time::Duration;

use tokio::time::{Instant, sleep, timeout, timeout_at};

/// What one look at a condition found: `Option` (`None`: not yet) or `Result`
/// (`Err(state)`: not yet, and `state` is shown if it never comes).
pub trait Look {
    type Found;
    fn found(self) -> Result<Self::Found, String>;
}

impl<T> Look for Option<T> {
    type Found = T;
    fn found(self) -> Result<T, String> {
        self.ok_or_else(|| "not yet".to_owned())
    }
}

impl<T, S: Debug> Look for Result<T, S> {
    type Found = T;
    fn found(self) -> Result<T, String> {
        self.map_err(|state| format!("{state:?}"))
    }
}

/// Looks again and again until `look` finds something, and returns that.
/// Panics after `limit` with `what` was waited for and what was seen last.
#[track_caller]
pub fn eventually<F, R>(what: &str, limit: Duration, mut look: F) -> impl Future<Output = R::Found>
where
    F: AsyncFnMut() -> R,
    R: Look,
{
    let caller = Location::caller();
    async move {
        let deadline = Instant::now() + limit;
        let mut pause = Duration::from_millis(1);
        let mut last = "nothing yet".to_owned();
        loop {
            match timeout_at(deadline, look()).await {
                Ok(seen) => match seen.found() {
                    Ok(found) => return found,
                    Err(state) => last = state,
                },
                Err(_) => last.push_str(" (and the last look did not return)"),
            }
            if Instant::now() + pause >= deadline {
                panic!("{caller}: waited {limit:?} in vain for: {what}; last seen: {last}");
            }
            sleep(pause).await;
            pause = (pause * 2).min(Duration::from_millis(20));
        }
    }
}

/// The future's output; panics with `what` when it takes longer than `limit`.
#[track_caller]
pub fn within<F: Future>(
    what: &str,
    limit: Duration,
    future: F,
) -> impl Future<Output = F::Output> {
    let caller = Location::caller();
    async move {
        match timeout(limit, future).await {
            Ok(output) => output,
            Err(_) => panic!("{caller}: not done within {limit:?}: {what}"),
        }
    }
}
