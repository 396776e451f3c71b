//! What is counted and told.

mod counters;
mod events;
mod full_counters;
mod observer;
