//! The worker: claims tasks, runs their handlers, settles them, and takes back the tasks of servers
//! that died. One file per component; `run.rs` starts and stops them.

mod attempt;
mod builder;
mod claimer;
mod config;
mod connections;
mod decide;
mod event;
mod executor;
mod failed_attempt;
mod forwarder;
mod handle;
mod health;
mod heartbeat;
mod hooks;
mod janitor;
mod leaks;
mod log_limit;
mod observer;
mod outbox;
mod patience;
mod phase;
mod place;
mod queues;
mod recoverer;
mod report;
mod retry_delay;
mod round;
mod run;
mod running;
mod settlement;
mod settler;
mod shared;
mod shares;
mod signals;
mod stats;

pub use builder::{BuildError, ServerBuilder};
pub use config::{LostLeases, UnknownKind};
pub use event::Event;
pub use failed_attempt::FailedAttempt;
pub use handle::{QueueError, ServerHandle};
pub use health::{Health, Problem};
pub use report::{Report, StillRunning};
pub use retry_delay::default_retry_delay;
pub use run::{Server, ServerError};
pub use stats::Stats;
