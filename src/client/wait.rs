use std::time::{Duration, Instant};

use serde::de::DeserializeOwned;
use thiserror::Error;
use tokio::sync::broadcast::error::RecvError;

use crate::broker::{BrokerError, Fault, Watched, wait};
use crate::client::endings::Ears;
use crate::client::handle::Client;
use crate::task::{NameError, PayloadError, check_id, check_queue, decode};

/// How long a waiter trusts its subscription before it looks for itself: a connection can be dead
/// without saying so.
const LOOK_AGAIN: Duration = Duration::from_secs(10);
/// And before it looks where it has no subscription.
const LOOK_UNTOLD: Duration = Duration::from_secs(2);
/// How long a look may take when the wait's own time is over.
const LOOK: Duration = Duration::from_secs(1);
/// How long the first look waits for the subscription, which a Redis user may not be allowed.
const SUBSCRIBE: Duration = Duration::from_secs(1);

/// How the task that was waited for ended.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum WaitOutcome<R> {
    /// It was completed, with this result; kept for the task's retention.
    Completed(R),
    /// It was given up.
    #[non_exhaustive]
    Archived {
        /// Why, as in the record.
        reason: String,
        /// What it failed with last.
        error: String,
    },
    /// There is no such task: it was completed without a retention, deleted, or never enqueued.
    Gone,
    /// It has not ended in time.
    TimedOut,
}

/// Why waiting failed.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum WaitError {
    /// The queue or id cannot be one.
    #[error(transparent)]
    Name(#[from] NameError),
    /// The result is not of the wanted type.
    #[error("the task's result is not of the wanted type")]
    Result(#[source] PayloadError),
    /// Redis refused, or failed until the time was over.
    #[error(transparent)]
    Broker(#[from] BrokerError),
}

impl Client {
    /// Waits until a task has ended, for at most `timeout`, without polling. The task needs a
    /// [`retention`](crate::NewTask::retention) for its result to be found: without one it is
    /// [`Gone`](WaitOutcome::Gone) once it is done. A handler that returns `()` leaves a result of `()`.
    ///
    /// ```no_run
    /// # use std::time::Duration;
    /// # use windlass::Client;
    /// # use windlass::client::WaitOutcome;
    /// # async fn example(client: Client, id: &str) -> Result<(), Box<dyn std::error::Error>> {
    /// match client.wait::<u64>("default", id, Duration::from_secs(30)).await? {
    ///     WaitOutcome::Completed(sum) => println!("{sum}"),
    ///     ended => println!("{ended:?}"),
    /// }
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// A name that cannot be one, a result of another type, or a Redis that refuses, or that fails until the end.
    pub async fn wait<R: DeserializeOwned>(
        &self,
        queue: &str,
        id: &str,
        timeout: Duration,
    ) -> Result<WaitOutcome<R>, WaitError> {
        check_queue(queue)?;
        check_id(id)?;
        let queue = self.keys.queue(queue);
        let mut ears = self.endings.here().listen(&queue);
        let until = Instant::now() + timeout.min(LONGEST);
        // So that nothing ends unheard between the look and the wait.
        let subscribed = ears.subscribed.wait_for(|times| *times > 0);
        let _ = tokio::time::timeout(SUBSCRIBE.min(timeout), subscribed).await;
        loop {
            let left = until.saturating_duration_since(Instant::now());
            let look = wait(&*self.pools, &queue, id, left + LOOK_AGAIN);
            let limit = left.max(LOOK);
            let looked = tokio::time::timeout(limit, look).await;
            let looked = looked.unwrap_or(Err(BrokerError::Timeout(limit)));
            match looked {
                Ok(Watched::Completed { result }) => {
                    return unpack(&result).map(WaitOutcome::Completed);
                }
                Ok(Watched::Archived { reason, error }) => {
                    return Ok(WaitOutcome::Archived { reason, error });
                }
                Ok(Watched::Gone) => return Ok(WaitOutcome::Gone),
                Ok(Watched::Waiting) if left.is_zero() => return Ok(WaitOutcome::TimedOut),
                Err(error) if left.is_zero() => return Err(error.into()),
                Ok(Watched::Waiting) => {
                    let is_told = *ears.subscribed.borrow() > 0;
                    let pause = if is_told { LOOK_AGAIN } else { LOOK_UNTOLD };
                    let happens = something_happens(&mut ears, id);
                    let _ = tokio::time::timeout(left.min(pause), happens).await;
                }
                Err(error) if error.fault() == Fault::Permanent => return Err(error.into()),
                Err(_) => tokio::time::sleep(left.min(Duration::from_millis(500))).await,
            }
        }
    }
}

/// Longer waits are cut: adding them to the clock could overflow.
const LONGEST: Duration = Duration::from_secs(365 * 24 * 3600);

fn unpack<R: DeserializeOwned>(result: &[u8]) -> Result<R, WaitError> {
    // What MessagePack writes for `()`, which is not stored.
    const NIL: &[u8] = &[0xc0];
    let result = if result.is_empty() { NIL } else { result };
    decode(result).map_err(WaitError::Result)
}

/// Returns when the task may have ended.
async fn something_happens(ears: &mut Ears, id: &str) {
    loop {
        tokio::select! {
            ended = ears.ended.recv() => match ended {
                Ok(ended) if *ended == *id => return,
                Ok(_) => {}
                Err(RecvError::Lagged(_)) => return,
                // The listener has gone; the caller looks again after a while.
                Err(RecvError::Closed) => return std::future::pending().await,
            },
            changed = ears.subscribed.changed() => match changed {
                Ok(()) => return,
                Err(_) => return std::future::pending().await,
            },
        }
    }
}
