//! The worker: claims tasks, runs their handlers, settles them, and takes back the tasks of servers
//! that died. A room for each concern; each `mod.rs` says what belongs there.

mod backoff;
mod claim;
mod control;
mod each_queue;
mod observe;
mod queues;
mod run;
mod settle;
mod setup;
mod shared;
mod upkeep;

pub use control::handle::{QueueError, ServerHandle};
pub use control::phase::Phase;
pub use control::report::{Report, StillRunning};
pub use control::run::{Server, ServerError};
pub use observe::event::Event;
pub use observe::health::{Health, HealthProblem};
pub use observe::stats::Stats;
pub use settle::failed_attempt::FailedAttempt;
pub use settle::lease_expired::LeaseExpired;
pub use settle::retry_delay::default_retry_delay;
pub use setup::builder::{BuildError, ServerBuilder};
pub use setup::config::{LostLeases, Undecodable, UnknownKind};
