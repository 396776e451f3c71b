//! Many at once, and none at all: what moves thousands of tasks, kills servers over and over, or
//! measures.

#[path = "../support/mod.rs"]
mod support;

mod due;
mod expired_leases;
mod full_archive;
mod hook_storm;
mod idle;
mod lateness;
mod many_queues;
