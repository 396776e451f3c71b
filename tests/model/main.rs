//! Random operations on a queue of a real Redis, each compared with a plain model of what the design
//! says: the answer, what was published, and every key afterwards.
//!
//! `MODEL_SEED` and `MODEL_CASES` (of about 60 operations each) vary what is run.

#[path = "../support/mod.rs"]
mod support;

// The transitions are private to the crate, so their sources are compiled into this test. It uses only
// a part of them, and what they export for the rest of the crate is unused here.
#[allow(dead_code, unused_imports)]
#[path = "../../src/broker/mod.rs"]
mod broker;
#[allow(dead_code, unused_imports)]
#[path = "../../src/defaults.rs"]
mod defaults;
#[allow(dead_code, unused_imports)]
#[path = "../../src/task/mod.rs"]
mod task;

mod answer;
mod difference;
mod generate;
mod invariants;
mod keys;
mod model;
mod op;
mod run;
mod script_times;
mod shapes;
mod show;
mod shrink;
mod system;
mod tally;
mod wrong_types;
