//! How attempts end: decides what becomes of a task, tells Redis until Redis has answered, and then tells
//! the world. Only `decide` decides, and it is pure; only `report` counts, logs and tells.

pub(crate) mod advice;
pub(crate) mod decide;
pub(crate) mod lease_expired;
pub(crate) mod report;
pub(crate) mod settler;
