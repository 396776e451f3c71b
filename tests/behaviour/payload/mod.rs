//! Payloads: their bytes on every way that a task can take, and those that cannot be read.

mod paths;
mod round_trips;
mod undecodable;
