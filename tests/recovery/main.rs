//! Leases, crashes and shutdown: what becomes of tasks when servers stop, freeze or die.
//!
//! Lost leases are waited for in real time, so most tests use a lease of 1 s, a clock skew of
//! 200 ms and a scan of 300 ms (see [`fixture::Settings`]); a test that needs other times says so.

mod fixture;
#[path = "../support/mod.rs"]
mod support;

mod broken_queue;
mod broken_records;
mod busy_runtime;
mod dropped_run;
mod early_signals;
mod grace;
mod hang_up;
mod killed_server;
mod leaked_handlers;
mod lost_leases;
mod outage;
mod paused_worker;
mod racing_recoverers;
mod reaper;
mod shutdown;
mod sigkill_storm;
mod sigterm;
mod stop;
mod stop_without_redis;
