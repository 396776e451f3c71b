//! What the tests, benchmarks and examples share.
//!
//! Include it with `#[path = "../support/mod.rs"] mod support;` (mind the
//! number of `..`). A typical test:
//!
//! ```ignore
//! let redis = RedisServer::shared();               // a private Redis, one per test binary
//! let prefix = unique_prefix("retries");           // keys that no other test touches
//! let mut connection = redis.connection().await;
//! // … enqueue, run a server …
//! eventually("the task is archived", Duration::from_secs(5), async || {
//!     archived(&mut connection, &prefix).await.then_some(())
//! })
//! .await;
//! ```
//!
//! - [`redis`]: real Redis servers of our own, to be killed, frozen, restarted.
//! - [`prefix`]: a key prefix for each test, so that tests run in parallel.
//! - [`stage`]: a test's keys, clients and servers, and looks at tasks.
//! - [`puppet`]: a handler that does what the test says, when the test says it.
//! - [`seen`]: what handlers tell the test.
//! - [`redis_side`]: what Redis says of what it was asked to do.
//! - [`wait`]: wait on a condition, with a limit, instead of sleeping.
//! - [`proxy`]: a network between a client and Redis that fails on demand.
//! - [`lag`]: how late this machine itself is.
//! - [`log`]: what the library logs.
//! - [`child`]: a test's other half in a process of its own, to be killed.
//!
//! Whatever ends the test process, SIGKILL included, no server, no child and no
//! file stays behind.

// Each binary that includes this uses only a part of it.
#![allow(dead_code, unused_imports)]

pub mod child;
mod lag;
mod log;
pub mod prefix;
mod process;
pub mod proxy;
pub mod puppet;
// Not public, so that `use support::*` does not hide the crate of that name.
mod redis;
pub mod redis_side;
pub mod seen;
pub mod signal;
pub mod stage;
pub mod wait;

pub use self::lag::Lag;
pub use self::log::Log;
pub use self::prefix::unique_prefix;
pub use self::proxy::{Mode, Proxy};
pub use self::puppet::{Call, Calls, puppet, puppet_for};
pub use self::redis::{RedisServer, connection};
pub use self::redis_side::{Monitor, Watch, calls_of};
pub use self::seen::{Seen, seen};
pub use self::stage::{Census, HOUR, LIMIT, Running, STATES, Stage, ms, task, write_tasks};
pub use self::wait::{eventually, within};
