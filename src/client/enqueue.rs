use std::future::{Future, IntoFuture};
use std::pin::Pin;
use std::time::{Duration, SystemTime};

use crate::client::error::EnqueueError;
use crate::client::handle::Client;
use crate::client::outcome::Enqueued;
use crate::task::{NewTask, RetryPolicy, Unique};

/// One task on its way: set options, then `.await` it, or take the future with [`send`](Self::send).
///
/// Dropping the future does not take the task back: it may already be on its way.
#[derive(Debug)]
#[must_use = "nothing is enqueued until this is awaited"]
pub struct Enqueue {
    client: Client,
    task: NewTask,
}

impl Client {
    /// Enqueues one task: set its options, then await it.
    pub fn enqueue(&self, task: impl Into<NewTask>) -> Enqueue {
        Enqueue {
            client: self.clone(),
            task: task.into(),
        }
    }
}

macro_rules! options {
    ($($name:ident($($argument:ident: $type:ty),*);)*) => {$(
        #[doc = concat!("See [`NewTask::", stringify!($name), "`].")]
        pub fn $name(mut self $(, $argument: $type)*) -> Self {
            self.task = self.task.$name($($argument),*);
            self
        }
    )*};
}

impl Enqueue {
    options! {
        queue(queue: impl Into<String>);
        id(id: impl Into<String>);
        delay(delay: Duration);
        run_at(time: SystemTime);
        priority(priority: u8);
        max_retry(retries: u32);
        timeout(timeout: Duration);
        no_timeout();
        retry_policy(policy: RetryPolicy);
        deadline(time: SystemTime);
        start_before(time: SystemTime);
        retention(retention: Duration);
        unique(unique: Unique);
        header(name: impl Into<String>, value: impl Into<String>);
    }

    /// Sends it: what `.await` does, as a future for `join!` and `spawn`.
    ///
    /// # Errors
    /// [`EnqueueError`] says whether the task is surely not enqueued or whether that is unknown.
    pub async fn send(self) -> Result<Enqueued, EnqueueError> {
        let item = self.client.prepare(self.task)?;
        self.client.joiners.here().enqueue(item).await
    }
}

impl IntoFuture for Enqueue {
    type Output = Result<Enqueued, EnqueueError>;
    type IntoFuture = Pin<Box<dyn Future<Output = Self::Output> + Send>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(self.send())
    }
}
