//! Redis and the network fail in every way: what clients and servers do then.

#[path = "../support/mod.rs"]
mod support;

#[path = "../lifecycle/fixture.rs"]
mod fixture;
#[path = "../lifecycle/seen.rs"]
mod seen;

mod refused;
