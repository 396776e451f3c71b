use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use redis::aio::MultiplexedConnection;
use redis::{Cmd, RedisError, Value};
use tokio_util::task::AbortOnDropHandle;

use crate::broker::connection::moment::Moment;

/// For how long after a reply a connection needs no sign of life.
const TRUSTED: Duration = Duration::from_secs(1);
/// How long a sign of life may take. The network may have forgotten a connection that was quiet; then
/// all that is sent on it is lost, and nobody is told.
pub(super) const SIGN_OF_LIFE: Duration = Duration::from_millis(500);

/// A connection that was made.
#[derive(Debug)]
pub(super) struct Live {
    redis: MultiplexedConnection,
    /// Ends with the connection, and with the runtime that it was made on.
    driver: AbortOnDropHandle<()>,
    heard: Moment,
    has_served: AtomicBool,
}

impl Live {
    pub(super) fn new(redis: MultiplexedConnection, driver: AbortOnDropHandle<()>) -> Self {
        Self {
            redis,
            driver,
            heard: Moment::now(),
            has_served: AtomicBool::new(false),
        }
    }

    /// Whether it was heard of so lately that it cannot have broken without anybody having noticed.
    pub(super) fn is_trusted(&self) -> bool {
        !self.has_ended() && self.heard.ago() <= TRUSTED
    }

    pub(super) fn has_ended(&self) -> bool {
        self.driver.is_finished()
    }

    /// Has the next command ask for a sign of life first.
    pub(super) fn doubt(&self) {
        self.heard.is_long_ago();
    }

    /// Whether it has ever done what it was asked to.
    pub(super) fn has_served(&self) -> bool {
        self.has_served.load(Ordering::Relaxed)
    }

    pub(super) async fn gives_a_sign(&self) -> bool {
        let ping = redis::cmd("PING");
        match tokio::time::timeout(SIGN_OF_LIFE, self.send(&ping)).await {
            Ok(Ok(_)) => true,
            // Whatever Redis says, it lives.
            Ok(Err(error)) => error.code().is_some(),
            Err(_) => false,
        }
    }

    pub(super) async fn send(&self, command: &Cmd) -> Result<Value, RedisError> {
        let reply = self.redis.clone().send_packed_command(command).await;
        let reply = reply.and_then(Value::extract_error);
        match &reply {
            Ok(_) => {
                self.heard.is_now();
                self.has_served.store(true, Ordering::Relaxed);
            }
            Err(error) if error.code().is_some() => self.heard.is_now(),
            Err(_) => {}
        }
        reply
    }
}
