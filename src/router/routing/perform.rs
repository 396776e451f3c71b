use std::time::Instant;

use crate::defaults;
use crate::router::handlers::{Cancellation, Delivery, TaskContext};
use crate::router::outcomes::Outcome;
use crate::router::routing::router::Router;
use crate::task::{NewTask, TaskOptions, Timeout};

impl Router {
    /// Runs a task in memory, without Redis: encodes and decodes it, and calls middleware and
    /// handler as a first attempt. For unit tests of handlers; needs the feature `testing`.
    ///
    /// A timeout only sets [`TaskContext::deadline`], and nothing is tried again.
    ///
    /// ```
    /// # use serde::{Deserialize, Serialize};
    /// # use windlass::{Router, Task};
    /// # #[derive(Serialize, Deserialize)]
    /// # struct Add { a: u32, b: u32 }
    /// # impl Task for Add { const KIND: &'static str = "add"; }
    /// async fn add(task: Add) -> Result<u32, String> {
    ///     task.a.checked_add(task.b).ok_or_else(|| "too large".into())
    /// }
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let router = Router::new().task(add);
    /// let outcome = router.perform(Add { a: 1, b: 2 }).await;
    /// assert_eq!(outcome.result::<u32>()?, Some(3));
    ///
    /// let outcome = router.perform(Add { a: 1, b: u32::MAX }).await;
    /// assert!(outcome.failure().is_some_and(|failure| failure.text() == "too large"));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Panics
    ///
    /// The router cannot be used, or the task cannot be enqueued: a server or a client would refuse
    /// it with an error.
    #[track_caller]
    pub fn perform(
        &self,
        task: impl Into<NewTask>,
    ) -> impl Future<Output = Outcome> + Send + 'static {
        let routes = match self.clone().build() {
            Ok(routes) => routes,
            Err(error) => panic!("this router cannot be used: {error}"),
        };
        match task.into().check(defaults::MAX_PAYLOAD) {
            Ok(task) => {
                let payload = task.payload;
                routes.dispatch(context(task.id, task.kind, task.options), payload)
            }
            Err(error) => panic!("this task cannot be enqueued: {error}"),
        }
    }
}

fn context(id: String, kind: String, options: TaskOptions) -> TaskContext {
    let timeout = options
        .timeout
        .unwrap_or(Timeout::After(defaults::TASK_TIMEOUT));
    TaskContext::new(Delivery {
        queue: options.queue().into(),
        id,
        kind,
        retried: 0,
        max_retry: options.max_retry.unwrap_or(defaults::MAX_RETRY),
        lease: 1,
        server_id: "perform".into(),
        deadline: match timeout {
            Timeout::After(timeout) => Instant::now().checked_add(timeout),
            Timeout::Never => None,
        },
        cancellation: Cancellation::new(),
        headers: options.headers,
        keeps_result: true,
        slot: None,
    })
}
