//! What a server lets others see of it: events, counters, health, logs. Changes nothing, and knows no
//! other room.

pub(crate) mod event;
pub(crate) mod event_task;
pub(crate) mod health;
pub(crate) mod log_limit;
pub(crate) mod stats;
pub(crate) mod task_name;
