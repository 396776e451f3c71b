//! What a task is: its type, payload, options, id and states. Nothing here knows Redis.

mod codec;
mod id;
mod invalid;
mod name;
mod new_task;
mod options;
mod raw;
mod retry_policy;
mod state;
mod typed;
mod unique;

pub(crate) use codec::{decode, encode};
pub(crate) use id::generate_id;
pub use invalid::{InvalidTask, PayloadError};
pub use name::{NameError, NameProblem};
pub(crate) use name::{check_header, check_id, check_kind, check_prefix, check_queue};
pub(crate) use new_task::EnqueueItem;
pub use new_task::NewTask;
pub(crate) use options::{Due, TaskOptions, Timeout};
pub use raw::RawTask;
pub use retry_policy::{PolicyProblem, RetryPolicy};
pub use state::TaskState;
pub use typed::Task;
pub use unique::Unique;
