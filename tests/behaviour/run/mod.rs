//! What a server does with a task of its own.

mod leases;
mod panics;
mod threads;
mod time_limits;
mod unknown_kind;
mod verdicts;
mod wake;
