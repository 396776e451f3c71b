use std::fmt;
use std::sync::Arc;

use crate::broker::{EnqueueItem, Keys, PerRuntime, Pools};
use crate::client::endings::Endings;
use crate::client::error::EnqueueError;
use crate::client::outcome::Enqueued;
use crate::client::send::{Bulk, Joiner};
use crate::inspector::Inspector;
use crate::task::{InvalidTask, NewTask};

/// Enqueues tasks. Cheap to clone; clones share their connections, and enqueues that happen at the
/// same time share their round trips. Each runtime that uses it has connections of its own, so that
/// one that stands still holds up no other.
///
/// When Redis is away, an enqueue fails within the connect and command timeouts (5 s each); once
/// Redis is back, the same client works again.
///
/// ```no_run
/// # use serde::{Deserialize, Serialize};
/// # #[derive(Serialize, Deserialize)] struct SendEmail { to: String }
/// # impl windlass::Task for SendEmail { const KIND: &'static str = "email:send"; }
/// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
/// use std::time::Duration;
/// use windlass::Client;
///
/// let client = Client::connect("redis://127.0.0.1/").await?;
/// let enqueued = client
///     .enqueue(SendEmail { to: "ada@example.org".into() })
///     .queue("mail")
///     .delay(Duration::from_secs(60))
///     .await?;
/// println!("{}", enqueued.id);
/// # Ok(()) }
/// ```
#[derive(Clone)]
pub struct Client {
    pub(super) joiners: Arc<PerRuntime<Joiner>>,
    pub(super) bulk: Arc<Bulk>,
    pub(super) endings: Arc<PerRuntime<Endings>>,
    /// For short calls other than a single enqueue.
    pub(super) pools: Arc<Pools>,
    pub(super) keys: Keys,
    pub(super) max_payload: usize,
}

impl Client {
    /// An inspector of the same Redis and prefix, on this client's connections.
    pub fn inspector(&self) -> Inspector {
        Inspector::new(self.pools.clone(), self.keys.clone())
    }

    /// Enqueues many tasks in few round trips, and returns one result for each, in order. A task that
    /// is refused does not stop the others.
    ///
    /// They are sent in calls of at most 500 tasks and 1 MiB, fewer where they have many options. When
    /// Redis fails in the middle, the tasks not yet sent fail as not enqueued.
    pub async fn enqueue_many(
        &self,
        tasks: impl IntoIterator<Item = impl Into<NewTask>>,
    ) -> Vec<Result<Enqueued, EnqueueError>> {
        let items = tasks
            .into_iter()
            .map(|task| self.prepare(task.into()))
            .collect();
        self.bulk.enqueue(items).await
    }

    pub(super) fn prepare(&self, task: NewTask) -> Result<EnqueueItem, InvalidTask> {
        task.check(self.max_payload)
    }
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client")
            .field("address", &self.pools.address())
            .field("prefix", &self.keys.prefix())
            .finish_non_exhaustive()
    }
}
