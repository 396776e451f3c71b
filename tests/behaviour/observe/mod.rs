//! What is counted and told.

mod counters;
mod deaths;
mod events;
mod many_deaths;
mod observer;
mod spans;
