//! How attempts end: decides what becomes of a task, tells Redis until Redis has answered, and then tells
//! the world. `decide` chooses, and is pure. Redis has the last word: a cancel, a newer task or a deadline
//! can make something else of the task, in `lua/shared/settle.lua`, `retry.lua` and `archive.lua`. Only
//! `report` counts, logs and tells, from what Redis answered.

pub(crate) mod advice;
pub(crate) mod decide;
pub(crate) mod lease_expired;
pub(crate) mod report;
pub(crate) mod settler;
