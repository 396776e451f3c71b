//! How runs end: decides what becomes of a task, and tells Redis until Redis has answered.

pub(crate) mod decide;
pub(crate) mod failed_attempt;
pub(crate) mod outbox;
pub(crate) mod retry_delay;
pub(crate) mod settlement;
pub(crate) mod settler;
