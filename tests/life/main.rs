//! What tasks may be given for their life: locks, deadlines, results, hooks; and who ends them.

#[path = "../support/mod.rs"]
mod support;

mod cancel;
mod deadlines;
mod fixture;
mod hooks;
mod janitor;
mod options;
mod puppet;
mod redis_side;
mod results;
mod unique;
