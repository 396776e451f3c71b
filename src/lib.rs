//! A distributed task broker on Redis: producers put tasks into queues, worker servers lease them,
//! run them and settle them, and the tasks of a server that dies run elsewhere.
//!
//! - [`Client`] enqueues [`Task`]s.
//! - [`Router`] finds the handler of a task's kind; [`Server`] runs it.
//!
//! ```no_run
//! use serde::{Deserialize, Serialize};
//! use windlass::{Client, Router, Server, Task};
//!
//! #[derive(Serialize, Deserialize)]
//! struct SendEmail { to: String }
//!
//! impl Task for SendEmail {
//!     const KIND: &'static str = "email:send";
//! }
//!
//! async fn send_email(task: SendEmail) -> Result<(), std::io::Error> {
//!     println!("to {}", task.to);
//!     Ok(())
//! }
//!
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! let client = Client::connect("redis://127.0.0.1/").await?;
//! client.enqueue(SendEmail { to: "ada@example.org".into() }).await?;
//!
//! let server = Server::builder().build(Router::new().task(send_email)).await?;
//! server.run().await?;
//! # Ok(()) }
//! ```
//!
//! # What is promised
//!
//! Every task runs **at least once**: an enqueue that was acknowledged is run, or ends in the
//! archive, through any crash of producers and workers, and of Redis as far as its persistence
//! reaches. A task runs twice when its server dies, or is cut off from Redis, in the middle of it; so
//! make handlers idempotent, by [`TaskContext::id`], or fence their side effects by
//! [`TaskContext::lease`].

// Where something cannot fail, `expect` says why.
#![deny(clippy::unwrap_used)]

// The code in the README must compile.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

mod broker;
mod client;
pub mod defaults;
mod inspector;
mod router;
mod server;
mod task;
mod user_code;

pub use broker::{
    ArchiveReason, BrokerError, ConnectProblem, RedisConfig, RedisConfigError, RedisFinding,
    UrlProblem,
};
pub use client::{
    AlreadyExists, Client, ClientBuilder, ClientError, Enqueue, EnqueueError, EnqueueOutcome,
    Enqueued, WaitError, Waited,
};
pub use inspector::{CancelMode, InspectError, Inspector, Operated, TaskInfo};
pub use router::{
    CancelReason, DeadLetter, Extractors, Failure, FailureCause, FromContext, Handler,
    HandlerFuture, HandlerResult, MissingState, Next, Outcome, ProgressError, Router, RouterError,
    State, StateType, TaskContext, TaskError, TaskResultExt, Verdict,
};
pub use server::{
    BuildError, Event, FailedAttempt, Health, LeaseExpired, LostLeases, Phase, Problem, QueueError,
    Report, Server, ServerBuilder, ServerError, ServerHandle, Stats, StillRunning, Undecodable,
    UnknownKind, default_retry_delay,
};
pub use task::{
    InvalidTask, NameError, NameProblem, NewTask, PayloadError, PolicyProblem, RawTask,
    RetryPolicy, Task, TaskState, Unique,
};
/// What [`TaskContext::cancellation`] returns: the token of `tokio-util`, so that it can be handed on
/// to other libraries.
pub use tokio_util::sync::CancellationToken;
