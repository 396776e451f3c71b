use std::sync::Arc;

use crate::broker::operator::{self, EndRequest, EndWish};
use crate::broker::{Keys, Pools, Queue, RedisConfig, check_control};
use crate::defaults;
use crate::inspector::answer::{CancelMode, ChangeOutcome};
use crate::inspector::error::InspectError;
use crate::inspector::task_info::TaskInfo;
use crate::task::{NewTask, PayloadError, check_id, check_queue};

/// How many calls can be on their way at a time.
const POOL_SIZE: usize = 4;

/// Looks at tasks and moves them by hand. Cheap to clone.
///
/// ```no_run
/// # async fn example(id: &str) -> Result<(), windlass::inspector::InspectError> {
/// use windlass::Inspector;
/// use windlass::inspector::CancelMode;
///
/// let inspector = Inspector::connect("redis://127.0.0.1/").await?;
/// if let Some(task) = inspector.task("default", id).await? {
///     println!("{} is {}", task.kind, task.state);
/// }
/// inspector.cancel("default", id, CancelMode::Archive).await?;
/// # Ok(()) }
/// ```
#[derive(Clone)]
pub struct Inspector {
    pools: Arc<Pools>,
    keys: Keys,
}

impl Inspector {
    /// An inspector that has reached Redis: at a URL, or by a [`RedisConfig`]. Logs a warning where its
    /// user may not tell servers of cancels.
    /// [`Client::inspector`](crate::Client::inspector) makes one that needs no connections of its own.
    ///
    /// # Errors
    /// A URL or [`RedisConfig`] that cannot be used, or a Redis that cannot be reached or refuses the
    /// login.
    pub async fn connect(redis: impl Into<RedisConfig>) -> Result<Self, InspectError> {
        let (endpoint, keys) = redis.into().open()?;
        let pools = Pools::new(endpoint, POOL_SIZE);
        pools.reach().await?;
        if let Some(finding) = check_control(&pools, &keys).await? {
            tracing::warn!("{finding}");
        }
        Ok(Self::new(Arc::new(pools), keys))
    }

    pub(crate) fn new(pools: Arc<Pools>, keys: Keys) -> Self {
        Self { pools, keys }
    }

    /// One task; `None` when the queue has none with this id.
    ///
    /// # Errors
    /// A bad name, or a Redis that cannot be asked. So for all calls below.
    pub async fn task(&self, queue: &str, id: &str) -> Result<Option<TaskInfo>, InspectError> {
        let look = operator::look(&*self.pools, &self.queue(queue, id)?, id).await?;
        Ok(look.and_then(|look| TaskInfo::new(queue, id, look)))
    }

    /// Makes a scheduled, retried or archived task pending now. One from the archive starts anew,
    /// with all its retries, and takes its lock again. A `deadline` or `start_before` that has passed
    /// is dropped, so that the task runs; one in the future stays.
    ///
    /// # Errors
    /// See [`task`](Self::task).
    pub async fn run(&self, queue: &str, id: &str) -> Result<ChangeOutcome, InspectError> {
        Ok(operator::run(&*self.pools, &self.queue(queue, id)?, id)
            .await?
            .into())
    }

    /// Archives a task, without running its dead-letter hook. One that runs is cancelled, and archived
    /// unless its handler completes it; one whose server is dead is taken over.
    ///
    /// # Errors
    /// See [`task`](Self::task).
    pub async fn archive(&self, queue: &str, id: &str) -> Result<ChangeOutcome, InspectError> {
        self.end(queue, id, EndWish::Archive, false).await
    }

    /// Deletes a task in any state. One that runs is cancelled, and deleted unless its handler
    /// archives it; one whose server is dead is taken over.
    ///
    /// # Errors
    /// See [`task`](Self::task).
    pub async fn delete(&self, queue: &str, id: &str) -> Result<ChangeOutcome, InspectError> {
        self.end(queue, id, EndWish::Delete, false).await
    }

    /// Cancels a task: one that waits is ended at once; of one that runs the handler is told. If the
    /// handler then succeeds, or gives a verdict that ends its task, that holds; what would have led to
    /// another attempt ends by the mode. A later cancel or archive of a task that still runs
    /// changes the mode only to a stronger one. A cancelled task owes its dead-letter hook.
    ///
    /// One that has ended stays as it is, and the answer says that it has: to remove it and its result,
    /// [`delete`](Self::delete) it.
    ///
    /// # Errors
    /// See [`task`](Self::task).
    pub async fn cancel(
        &self,
        queue: &str,
        id: &str,
        mode: CancelMode,
    ) -> Result<ChangeOutcome, InspectError> {
        self.end(queue, id, mode.into(), true).await
    }

    /// Gives a task that is not active the payload of this one, which must be of the same kind.
    ///
    /// A lock ([`Unique`](crate::Unique)) is made when a task is enqueued, and an edit does not change
    /// it: a task whose lock is made of its payload keeps that of the payload it was enqueued with.
    ///
    /// # Errors
    /// See [`task`](Self::task); and a payload that cannot be stored.
    pub async fn edit(
        &self,
        queue: &str,
        id: &str,
        task: impl Into<NewTask>,
    ) -> Result<ChangeOutcome, InspectError> {
        let (kind, payload) = task.into().into_payload();
        let payload = payload?;
        if payload.len() > defaults::MAX_PAYLOAD {
            return Err(InspectError::Payload(PayloadError::TooLarge {
                bytes: payload.len(),
                cap: defaults::MAX_PAYLOAD,
            }));
        }
        Ok(
            operator::edit(&*self.pools, &self.queue(queue, id)?, id, &kind, &payload)
                .await?
                .into(),
        )
    }

    async fn end(
        &self,
        queue: &str,
        id: &str,
        wish: EndWish,
        is_cancel: bool,
    ) -> Result<ChangeOutcome, InspectError> {
        let request = EndRequest {
            id,
            wish,
            is_cancel,
        };
        Ok(
            operator::end(&*self.pools, &self.keys, &self.queue(queue, id)?, request)
                .await?
                .into(),
        )
    }

    fn queue(&self, queue: &str, id: &str) -> Result<Queue, InspectError> {
        check_queue(queue)?;
        check_id(id)?;
        Ok(self.keys.queue(queue))
    }
}

impl std::fmt::Debug for Inspector {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Inspector")
            .field("address", &self.pools.address())
            .field("prefix", &self.keys.prefix())
            .finish_non_exhaustive()
    }
}
