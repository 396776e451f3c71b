//! What a queue does while Redis and the servers are well: a folder for each feature.

#[path = "../support/mod.rs"]
mod support;

mod archive;
mod cancel;
mod dead_letters;
mod deadlines;
mod delays;
mod enqueue;
mod inspector;
mod observe;
mod options;
mod payload;
mod queues;
mod results;
mod retry;
mod run;
mod unique;
