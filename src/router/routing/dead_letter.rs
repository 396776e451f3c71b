use std::sync::Arc;
use std::time::SystemTime;

use futures::FutureExt;
use futures::future::BoxFuture;
use serde::de::DeserializeOwned;

use crate::defaults;
use crate::router::outcomes::{BoxError, Outcome};
use crate::router::routing::blocking;
use crate::router::routing::guarded::Guarded;
use crate::task::{InvalidTask, NewTask, PayloadError, decode};

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
    /// Its headers: name and value.
    pub headers: Vec<(String, String)>,
    /// The number of its last attempt, starting at 1 as in
    /// [`TaskContext::attempt`](crate::TaskContext::attempt); 0 if none has ended.
    pub attempt: u32,
    /// How many attempts had failed before the last one.
    pub retried: u32,
    /// How many failed attempts were to be tried again.
    pub max_retry: u32,
    /// Why it was given up, as in the record: `retries_exhausted`, `lease_expired`,
    /// `deadline_passed`, `skipped`, `undecodable`, `cancelled` or `unknown_kind`.
    pub reason: String,
    /// What it failed with last; empty when it never ran.
    pub error: String,
    /// When it was given up, by Redis' clock.
    pub died_at: SystemTime,
}

impl DeadLetter {
    /// A letter to test a hook with: of a task that was given up for this reason without having run.
    /// Set other fields on it.
    ///
    /// ```
    /// # use windlass::handler::DeadLetter;
    /// # use windlass::task::RawTask;
    /// let mut letter = DeadLetter::new(RawTask::new("email:send", "…"), "retries_exhausted")?;
    /// letter.error = "550 no such mailbox".into();
    /// # Ok::<(), windlass::task::InvalidTask>(())
    /// ```
    ///
    /// # Errors
    /// The task is one that no enqueue would take.
    pub fn new(task: impl Into<NewTask>, reason: impl Into<String>) -> Result<Self, InvalidTask> {
        let task = task.into().check(defaults::MAX_PAYLOAD)?;
        Ok(Self {
            queue: task.options.queue().to_owned(),
            id: task.id,
            kind: task.kind,
            payload: task.payload,
            headers: task.options.headers,
            attempt: 0,
            retried: 0,
            max_retry: task.options.max_retry.unwrap_or(defaults::MAX_RETRY),
            reason: reason.into(),
            error: String::new(),
            died_at: SystemTime::now(),
        })
    }

    /// The header of this name, if the task was enqueued with one.
    pub fn header(&self, name: &str) -> Option<&str> {
        let mut headers = self.headers.iter();
        headers.find_map(|(known, value)| (known == name).then_some(&**value))
    }

    /// The task itself.
    ///
    /// # Errors
    /// The payload is not that of a `T`.
    pub fn task<T: DeserializeOwned>(&self) -> Result<T, PayloadError> {
        decode(&self.payload)
    }
}

/// A dead-letter hook with its types forgotten. Its panics are failures. A hook keeps its slot until it
/// has ended: a blocking one also after it was given up.
pub(crate) type DeadLetterHook =
    dyn Fn(DeadLetter, HookSlot) -> BoxFuture<'static, Outcome> + Send + Sync;

/// One of as many slots as hooks may run at the same time. It is taken for as long as this is held.
pub(crate) type HookSlot = Box<dyn Send>;

/// Forgets the types of a user's async hook.
pub(super) fn asynchronous<F, E>(
    function: impl Fn(DeadLetter) -> F + Send + Sync + 'static,
) -> Arc<DeadLetterHook>
where
    F: Future<Output = Result<(), E>> + Send + 'static,
    E: Into<BoxError>,
{
    Arc::new(move |letter, slot| {
        let run = Guarded::start(|| Ok(function(letter).map(|ended| outcome(ended)).boxed()));
        let run = async {
            let outcome = run.await;
            drop(slot);
            outcome
        };
        run.boxed()
    })
}

/// Forgets the types of a user's blocking hook, which gets a thread for each run.
pub(super) fn blocking<E: Into<BoxError>>(
    function: impl Fn(DeadLetter) -> Result<(), E> + Send + Sync + 'static,
) -> Arc<DeadLetterHook> {
    let function = Arc::new(function);
    Arc::new(move |letter, slot| {
        let function = Arc::clone(&function);
        let kind = letter.kind.clone();
        let run = || blocking::on_thread(&kind, slot, move || outcome(function(letter)));
        Guarded::start(run).boxed()
    })
}

fn outcome<E: Into<BoxError>>(ended: Result<(), E>) -> Outcome {
    match ended {
        Ok(()) => Outcome::completed(),
        Err(error) => Outcome::failed(error),
    }
}
