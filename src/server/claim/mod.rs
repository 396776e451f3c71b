//! Taking tasks from Redis: as many as there are free slots, from the queues by their weights. Uses
//! `run` to start what it got; touches no record.

mod board;
pub(crate) mod claimer;
pub(crate) mod lost_claims;
mod redis_clock;
pub(crate) mod weights;
