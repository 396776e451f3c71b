//! What a server does with a task.

mod attempts;
mod delays;
mod error_text;
mod events;
mod full_counters;
mod idle;
mod is_failure;
mod leases;
mod observer;
mod panics;
mod paused;
mod queues;
mod retry_delay;
mod shares;
mod time_limits;
mod undecodable;
mod unknown_kind;
mod verdicts;
mod wake;
