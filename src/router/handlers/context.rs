use std::sync::{Arc, OnceLock, Weak};
use std::time::Instant;

use tokio_util::sync::CancellationToken;

use crate::router::handlers::cancellation::Cancellation;
use crate::router::handlers::slot::{ProgressError, Slot};
use crate::router::handlers::states::States;
use crate::router::outcomes::CancelReason;
use crate::user_code::truncate;

/// The longest note that a handler's progress may have, in bytes.
const MAX_NOTE: usize = 1024;

/// What the server knows of a task that it is about to run.
pub(crate) struct Delivery {
    pub id: String,
    pub kind: String,
    pub queue: Arc<str>,
    pub retried: u32,
    pub max_retry: u32,
    pub lease: u64,
    pub server_id: Arc<str>,
    pub deadline: Option<Instant>,
    pub cancellation: Cancellation,
    pub headers: Vec<(String, String)>,
    /// Whether the handler's result is of any use.
    pub keeps_result: bool,
    /// Held by the thread of a blocking handler for as long as it runs, so that a handler which the
    /// server has given up still takes up its slot. `None`: no server runs it.
    pub slot: Option<Weak<dyn Slot>>,
}

impl std::fmt::Debug for Delivery {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Delivery")
            .field("id", &self.id)
            .field("kind", &self.kind)
            .field("queue", &self.queue)
            .field("retried", &self.retried)
            .field("lease", &self.lease)
            .finish_non_exhaustive()
    }
}

/// The attempt that is running: which task it is, and whether it is to end.
///
/// An extractor, so a handler gets it by naming it as an argument. Cheap to clone.
///
/// ```
/// # use serde::{Deserialize, Serialize};
/// # use windlass::{Router, Task, TaskContext};
/// # #[derive(Serialize, Deserialize)]
/// # struct Export { pages: u32 }
/// # impl Task for Export { const KIND: &'static str = "export:run"; }
/// async fn export(task: Export, context: TaskContext) -> Result<(), std::io::Error> {
///     for page in 0..task.pages {
///         if context.is_cancelled() {
///             return Err(std::io::ErrorKind::Interrupted.into());
///         }
///         println!("attempt {} of {}: page {page}", context.attempt(), context.id());
///     }
///     Ok(())
/// }
/// # let _ = Router::new().task(export);
/// ```
#[derive(Debug, Clone)]
pub struct TaskContext(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    delivery: Delivery,
    /// Set by the router when it takes the task: the server knows nothing of states.
    states: OnceLock<Arc<States>>,
}

impl TaskContext {
    pub(crate) fn new(delivery: Delivery) -> Self {
        Self(Arc::new(Inner {
            delivery,
            states: OnceLock::new(),
        }))
    }

    /// The task's id, unique in its queue.
    pub fn id(&self) -> &str {
        &self.0.delivery.id
    }

    /// The task's kind, such as `email:send`.
    pub fn kind(&self) -> &str {
        &self.0.delivery.kind
    }

    /// The queue that the task came from.
    pub fn queue(&self) -> &str {
        &self.0.delivery.queue
    }

    /// The number of this attempt, starting at 1.
    pub fn attempt(&self) -> u32 {
        self.retried().saturating_add(1)
    }

    /// How many attempts have failed before this one.
    pub fn retried(&self) -> u32 {
        self.0.delivery.retried
    }

    /// How many failed attempts are tried again.
    pub fn max_retry(&self) -> u32 {
        self.0.delivery.max_retry
    }

    /// Whether the task is archived if this attempt fails.
    pub fn is_final_attempt(&self) -> bool {
        self.retried() >= self.max_retry()
    }

    /// The lease number: a fencing number for what the task does outside of windlass.
    ///
    /// It grows with every claim of the queue. A server that was cut off can still be running an
    /// attempt after its lease went to another one; a store that remembers the highest number it
    /// has seen for a task, and refuses a write that comes with a lower one, is safe from it.
    ///
    /// It is the time of the claim in µs by Redis' clock, or one more than the last one. So it falls only
    /// where Redis has lost the last one and has an earlier clock, as after a failover to a replica.
    pub fn lease(&self) -> u64 {
        self.0.delivery.lease
    }

    /// The id of the server that runs this attempt: fresh at each start of the process.
    pub fn server_id(&self) -> &str {
        &self.0.delivery.server_id
    }

    /// When this attempt's timeout fires; `None` if it has none.
    pub fn deadline(&self) -> Option<Instant> {
        self.0.delivery.deadline
    }

    /// Whether this attempt is to end. What it does after that may be for nothing, or be done twice.
    pub fn is_cancelled(&self) -> bool {
        self.0.delivery.cancellation.is_cancelled()
    }

    /// Waits until this attempt is to end; forever, if that never happens.
    pub async fn cancelled(&self) {
        self.0.delivery.cancellation.cancelled().await;
    }

    /// Why this attempt is to end; `None` as long as it is not cancelled.
    pub fn cancel_reason(&self) -> Option<CancelReason> {
        self.0.delivery.cancellation.reason()
    }

    /// A token that fires when this attempt is to end, to hand on to what the handler calls.
    ///
    /// Each call makes a child of the server's own token: cancelling it ends what the handler gave
    /// it to, and not the attempt.
    pub fn cancellation(&self) -> CancellationToken {
        self.0.delivery.cancellation.token().child_token()
    }

    /// The header of this name, if the task was enqueued with one.
    pub fn header(&self, name: &str) -> Option<&str> {
        let mut headers = self.headers();
        headers.find_map(|(known, value)| (known == name).then_some(value))
    }

    /// The task's headers: name and value.
    pub fn headers(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0
            .delivery
            .headers
            .iter()
            .map(|(name, value)| (name.as_str(), value.as_str()))
    }

    /// Stores how far the handler has come, for whoever looks at the task: `done` of `total`, and a
    /// few words (cut at 1 KiB). One round trip to Redis: call it a few times a second at most.
    ///
    /// # Errors
    /// The attempt is over, or its lease was lost. Or Redis could not be reached, which need not stop
    /// the handler.
    pub async fn progress(&self, done: u64, total: u64, note: &str) -> Result<(), ProgressError> {
        let Some(slot) = &self.0.delivery.slot else {
            return Ok(());
        };
        let slot = slot.upgrade().ok_or(ProgressError::Ended)?;
        let note = truncate(note, MAX_NOTE);
        slot.progress(format!("{done}/{total} {note}")).await
    }

    pub(in crate::router) fn keeps_result(&self) -> bool {
        self.0.delivery.keeps_result
    }

    /// Keeps the server's slot taken until it is dropped. `None` if no server runs this.
    pub(in crate::router) fn slot(&self) -> Option<Arc<dyn Slot>> {
        self.0.delivery.slot.as_ref()?.upgrade()
    }

    /// Gives the attempt the states of the router that runs it.
    pub(in crate::router) fn attach(&self, states: &Arc<States>) {
        self.0.states.get_or_init(|| Arc::clone(states));
    }

    pub(super) fn states(&self) -> Option<&States> {
        self.0.states.get().map(Arc::as_ref)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::router::fixture::delivery;

    #[test]
    fn the_final_attempt_is_the_one_after_the_last_retry() {
        let attempt = |retried, max_retry| {
            TaskContext::new(Delivery {
                retried,
                max_retry,
                ..delivery("k")
            })
        };
        assert!(!attempt(0, 1).is_final_attempt());
        assert!(attempt(1, 1).is_final_attempt());
        assert!(attempt(0, 0).is_final_attempt());
        assert_eq!(attempt(1, 1).attempt(), 2);
    }

    #[tokio::test]
    async fn a_cancelled_server_token_reaches_the_handler_and_not_the_other_way_round() {
        let cancellation = Cancellation::new();
        let context = TaskContext::new(Delivery {
            cancellation: cancellation.clone(),
            ..delivery("k")
        });
        context.cancellation().cancel();
        assert!(!context.is_cancelled() && !cancellation.is_cancelled());

        let token = context.cancellation();
        cancellation.cancel(CancelReason::Timeout);
        token.cancelled().await;
        context.cancelled().await;
        assert_eq!(context.cancel_reason(), Some(CancelReason::Timeout));
    }
}
