//! The operator: looks at tasks and moves them by hand.

mod answer;
mod error;
mod handle;
mod task_info;

pub use answer::{CancelMode, ChangeOutcome};
pub use error::InspectError;
pub use handle::Inspector;
pub use task_info::TaskInfo;
