use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::task::codec::encode_task;
use crate::task::new_task::NewTask;

/// A type of work: what it carries, and the kind by which workers find its handler.
///
/// The value is stored as MessagePack with field names.
///
/// ```
/// use serde::{Deserialize, Serialize};
/// use windlass::{NewTask, Task, Unique};
///
/// #[derive(Serialize, Deserialize)]
/// struct SendEmail {
///     to: String,
/// }
///
/// impl Task for SendEmail {
///     const KIND: &'static str = "email:send";
///
///     fn defaults(&self, task: NewTask) -> NewTask {
///         let one_per_reader = Unique::until_done().key(&self.to);
///         task.queue("mail").max_retry(5).unique(one_per_reader)
///     }
/// }
/// ```
///
/// # Changing a type while tasks of it are queued
///
/// Producers and workers are rarely replaced at the same moment, and queued tasks are older than
/// both. So old payloads must be readable by new code, and new ones by old code for as long as it runs.
///
/// - **Add a field** with `#[serde(default)]`. New code reads old payloads, and old code ignores what
///   it does not know, unless its type has `#[serde(deny_unknown_fields)]`.
/// - **Rename a field** with `#[serde(alias = "old_name")]` in the workers first, then in the
///   producers.
/// - **Remove a field** from the workers first, or give it a default there.
/// - **Add a variant** to an enum in the workers first; `#[serde(other)]` makes old code read variants
///   that it does not know.
/// - **Change a field's type**, or what it means: make it a new field, or a new kind, such as
///   `email:send:2`.
///
/// A task whose payload a worker cannot read is put off for 10 s ± half, without spending a retry, so
/// that another worker may run it; `last_error` says what is wrong. After about 10 min of that it is
/// archived as `undecodable`, and [`Inspector::run`](crate::Inspector::run) runs it again once workers
/// can read it. [`ServerBuilder::undecodable`](crate::server::ServerBuilder::undecodable) archives it at once.
///
/// ```
/// # use serde::{Deserialize, Serialize};
/// #[derive(Serialize, Deserialize)]
/// struct SendEmail {
///     #[serde(alias = "to")]
///     recipient: String,
///     /// Not in the first version.
///     #[serde(default)]
///     subject: String,
///     #[serde(default)]
///     priority: Priority,
/// }
///
/// #[derive(Serialize, Deserialize, Default)]
/// enum Priority {
///     #[default]
///     Normal,
///     High,
///     /// One that a later version has added.
///     #[serde(other)]
///     Unknown,
/// }
/// # impl windlass::Task for SendEmail { const KIND: &'static str = "email:send"; }
/// # windlass::handler::DeadLetter::new(windlass::task::RawTask::new("email:send", *b"\x82\xa2to\xa1x\xa8priority\xa3Low"), "")?
/// #     .task::<SendEmail>()?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a task",
    note = "implement `windlass::Task` for it: `impl Task for {Self} {{ const KIND: &'static str = \"area:action\"; }}`",
    note = "a task's type must also implement `serde::Serialize` and `serde::Deserialize`"
)]
pub trait Task: Serialize + DeserializeOwned + Send + 'static {
    /// The kind: at most 256 bytes, no braces, no characters that cannot be seen; `area:action` by
    /// custom.
    const KIND: &'static str;

    /// The options of this task, unless others are set where it is enqueued. They may come from its
    /// fields: a lock's key, say. Default: none.
    fn defaults(&self, task: NewTask) -> NewTask {
        task
    }
}

impl<T: Task> From<T> for NewTask {
    fn from(task: T) -> Self {
        task.defaults(NewTask::with_payload(T::KIND.into(), encode_task(&task)))
    }
}
