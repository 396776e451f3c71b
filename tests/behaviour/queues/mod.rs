//! Several queues: which are served, in what order, and by how much.

mod added_and_removed;
mod names;
mod order;
mod paused;
mod reaper;
mod refused;
mod shares;
