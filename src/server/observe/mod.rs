//! What a server lets others see of it: events, counters, health, logs. Changes nothing.

pub(crate) mod event;
pub(crate) mod health;
pub(crate) mod log_limit;
pub(crate) mod observer;
pub(crate) mod stats;
pub(crate) mod task_name;
