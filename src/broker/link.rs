use std::future::pending;
use std::sync::Arc;
use std::time::{Duration, Instant};

use redis::aio::MultiplexedConnection;
use redis::{Cmd, Value};
use tokio::sync::Mutex;
use tokio_util::task::AbortOnDropHandle;

use super::{BrokerError, Endpoint, Fault, Query};

/// One held connection that heals: an error after which it cannot be trusted drops it, and the next
/// command connects again. Commands sent at the same time share it, in one pipeline.
///
/// It does not wait or repeat: how patient to be is its user's business.
#[derive(Debug)]
pub(crate) struct Link {
    endpoint: Arc<Endpoint>,
    response_timeout: Duration,
    held: Mutex<Held>,
}

#[derive(Debug, Default)]
struct Held {
    connection: Option<MultiplexedConnection>,
    /// Counts connections, so that a late error of an old one does not drop its successor.
    generation: u64,
    /// When it was last asked for.
    used: Option<Instant>,
    /// A task that only ends with the runtime that drives the connection.
    runtime: Option<AbortOnDropHandle<()>>,
}

/// How long a connection may lie idle before it is doubted.
const TRUSTED: Duration = Duration::from_secs(1);

impl Held {
    /// Whether there is a connection that cannot have broken without anybody having noticed: Redis or
    /// something on the way closed it while it was idle, or the runtime that drove it has ended.
    fn is_trusted(&self) -> bool {
        self.connection.is_some()
            && self.used.is_some_and(|at| at.elapsed() <= TRUSTED)
            && self.runtime.as_ref().is_some_and(|it| !it.is_finished())
    }
}

impl Link {
    pub(crate) fn new(endpoint: Arc<Endpoint>) -> Self {
        let response_timeout = endpoint.command_timeout();
        Self::with_response_timeout(endpoint, response_timeout)
    }

    pub(crate) fn with_response_timeout(
        endpoint: Arc<Endpoint>,
        response_timeout: Duration,
    ) -> Self {
        Self {
            endpoint,
            response_timeout,
            held: Mutex::default(),
        }
    }

    /// Connects now if it is not connected.
    pub(crate) async fn connect(&self) -> Result<(), BrokerError> {
        self.connection().await.map(drop)
    }

    /// Whether a command can go at once, without a look whether the connection lives.
    pub(crate) fn is_trusted(&self) -> bool {
        self.held.try_lock().is_ok_and(|held| held.is_trusted())
    }

    /// Has the next command make sure first that the connection lives.
    pub(crate) fn doubt(&self) {
        // Whoever holds it is about to use it, and may find out.
        if let Ok(mut held) = self.held.try_lock() {
            held.used = None;
        }
    }

    /// Connects if it is not connected, and makes sure that a doubtful connection lives. Before a
    /// command that must not be repeated: whether one that was sent into a dead connection has run
    /// would be unknown.
    pub(crate) async fn revive(&self) -> Result<(), BrokerError> {
        if self.held.lock().await.is_trusted() {
            return Ok(());
        }
        match self.query(&redis::cmd("PING")).await {
            Err(BrokerError::Disconnected(_)) => self.connect().await,
            Err(error) if error.fault() == Fault::Reconnect => Err(error),
            // Whatever else Redis says, it answers.
            _ => Ok(()),
        }
    }

    async fn connection(&self) -> Result<(MultiplexedConnection, u64), BrokerError> {
        let mut held = self.held.lock().await;
        held.used = Some(Instant::now());
        if let Some(connection) = &held.connection {
            return Ok((connection.clone(), held.generation));
        }
        // Boxed, because it is large, rare, and part of the future of every command.
        let connect = Box::pin(self.endpoint.connect(self.response_timeout));
        let connection = connect.await?;
        held.runtime = Some(AbortOnDropHandle::new(tokio::spawn(pending())));
        held.generation += 1;
        held.connection = Some(connection.clone());
        Ok((connection, held.generation))
    }

    async fn drop_generation(&self, generation: u64) {
        let mut held = self.held.lock().await;
        if held.generation == generation {
            held.connection = None;
        }
    }
}

impl Query for Link {
    async fn query(&self, command: &Cmd) -> Result<Value, BrokerError> {
        let (mut connection, generation) = self.connection().await?;
        let reply = connection
            .send_packed_command(command)
            .await
            .and_then(Value::extract_error);
        match reply {
            Ok(value) => Ok(value),
            Err(error) => {
                let error = BrokerError::classify(error, self.response_timeout);
                if error.fault() == Fault::Reconnect {
                    self.drop_generation(generation).await;
                }
                Err(error)
            }
        }
    }
}
