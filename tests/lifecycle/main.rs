//! A task's life: from its enqueue in every form to its end in every way.

#[path = "../support/mod.rs"]
mod support;

mod calls;
mod client;
mod fixture;
mod seen;
mod worker;
