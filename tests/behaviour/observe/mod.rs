//! What is counted and told.

mod counters;
mod deaths;
mod events;
mod observer;
mod spans;
