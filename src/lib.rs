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
//! # Where things are
//!
//! The root has what nearly every program names. [`client`] has what producers meet besides, [`task`]
//! what tasks are made of, [`handler`] what handlers and hooks are made of, [`server`] the worker
//! server's settings, events and health, [`inspector`] what operators ask, [`error`] what can go wrong
//! with Redis, [`defaults`] each default.
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
pub mod client;
pub mod defaults;
pub mod inspector;
mod router;
pub mod server;
pub mod task;
mod user_code;

/// What handlers, middleware and dead-letter hooks are made of.
pub mod handler {
    pub use crate::broker::ArchiveReason;
    pub use crate::router::{
        CancelReason, DeadLetter, Extractors, Failure, FailureCause, FromContext, Handler,
        HandlerFuture, HandlerResult, MissingState, Next, Outcome, ProgressError, RouterError,
        StateType, TaskResultExt, Verdict,
    };
    /// What [`TaskContext::cancellation`](crate::TaskContext::cancellation) returns: the token of
    /// `tokio-util`, so that it can be handed on to other libraries.
    pub use tokio_util::sync::CancellationToken;
}

/// What can go wrong with Redis, for clients, servers and inspectors alike.
pub mod error {
    pub use crate::broker::{
        BrokerError, ConnectProblem, RedisConfigError, SetupProblem, UrlProblem,
    };
}

pub use broker::RedisConfig;
pub use client::Client;
pub use inspector::Inspector;
pub use router::{Router, State, TaskContext, TaskError};
pub use server::Server;
pub use task::{NewTask, Task, Unique};
