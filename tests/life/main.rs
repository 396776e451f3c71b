//! What tasks may be given for their life: locks, deadlines, results, hooks; and who ends them.

#[path = "../support/mod.rs"]
mod support;

mod cancel;
mod counters;
mod deadlines;
mod fixture;
mod hooks;
mod janitor;
mod load;
mod options;
mod payload;
mod puppet;
mod redis_side;
mod results;
mod unique;
mod worker_loss;
