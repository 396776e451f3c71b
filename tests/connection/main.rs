//! Redis and the network fail in every way: what clients and servers do then.

#[path = "../support/mod.rs"]
mod support;
use support::{self as fixture, seen};

mod config;
mod denied;
mod health;
mod loading;
mod lost_reply;
mod memory_full;
mod outage;
mod patience;
mod producer;
mod quiet;
mod read_only;
mod refused;
mod restarts;
mod runtimes;
mod scripts_forgotten;
mod settings;
mod unpolled;
mod wake_connection;
