use serde::Serialize;
use serde::de::DeserializeOwned;

use super::NewTask;

/// A type of work: what it carries, and the kind by which workers find its handler.
///
/// The value is stored as MessagePack with field names, so fields with `#[serde(default)]` can be
/// added while old tasks are still queued.
///
/// ```
/// use serde::{Deserialize, Serialize};
/// use windlass::{NewTask, Task};
///
/// #[derive(Serialize, Deserialize)]
/// struct SendEmail {
///     to: String,
/// }
///
/// impl Task for SendEmail {
///     const KIND: &'static str = "email:send";
///
///     fn defaults(task: NewTask) -> NewTask {
///         task.queue("mail").max_retry(5)
///     }
/// }
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

    /// The options of every task of this type. What is set where it is enqueued wins.
    fn defaults(task: NewTask) -> NewTask {
        task
    }
}
