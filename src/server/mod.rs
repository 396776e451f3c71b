//! The worker: claims tasks, runs their handlers, settles them, and takes back the tasks of servers
//! that died. A room for each concern; each `mod.rs` says what belongs there. Imports between them point
//! one way: setup → control → claim → run → settle → shared → observe; upkeep stands beside claim.

mod claim;
mod control;
mod observe;
mod phase;
mod run;
mod settle;
mod setup;
mod shared;
mod upkeep;

pub use control::error::ServerError;
pub use control::handle::{QueueError, ServerHandle};
pub use control::report::{Report, StillRunning};
pub use control::server::Server;
pub use observe::event::Event;
pub use observe::event_task::EventTask;
pub use observe::health::{Health, HealthProblem};
pub use observe::stats::Stats;
pub use phase::Phase;
pub use settle::lease_expired::LeaseExpired;
pub use setup::builder::ServerBuilder;
pub use setup::error::BuildError;
pub use shared::config::{LostLeases, Undecodable, UnknownKind};
pub use shared::failed_attempt::FailedAttempt;
pub use shared::retry_delay::default_retry_delay;
