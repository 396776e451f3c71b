//! Tasks that are ended from outside.

mod channel;
mod dead_server;
mod verdicts;
mod waiting;
