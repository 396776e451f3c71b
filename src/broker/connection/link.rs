use std::future::pending;
use std::panic::resume_unwind;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures::FutureExt;
use futures::future::{BoxFuture, Shared};
use parking_lot::Mutex;
use redis::aio::MultiplexedConnection;
use redis::{Cmd, Value};
use tokio::task::AbortHandle;
use tokio_util::task::AbortOnDropHandle;

use super::{Endpoint, Query};
use crate::broker::{BrokerError, Fault};

/// One held connection that heals: an error after which it cannot be trusted drops it, and the next
/// command connects again. Commands sent at the same time share it, in one pipeline.
///
/// It does not wait or repeat: how patient to be is its user's business.
#[derive(Debug)]
pub(crate) struct Link(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    endpoint: Arc<Endpoint>,
    response_timeout: Duration,
    held: Mutex<Held>,
}

/// A connection and its generation.
type Connected = Result<(MultiplexedConnection, u64), BrokerError>;

#[derive(Debug, Default)]
struct Held {
    connection: Option<MultiplexedConnection>,
    /// Counts connections, so that a late error of an old one does not drop its successor.
    generation: u64,
    /// When it was last asked for.
    used: Option<Instant>,
    /// A task that only ends with the runtime that drives the connection.
    runtime: Option<AbortOnDropHandle<()>>,
    attempt: Option<Attempt>,
}

/// A connection that is being made.
#[derive(Debug)]
struct Attempt {
    since: Instant,
    task: AbortHandle,
    outcome: Shared<BoxFuture<'static, Connected>>,
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

    /// The connection, if there is one, and its generation.
    fn take_up(&mut self) -> Option<(MultiplexedConnection, u64)> {
        self.used = Some(Instant::now());
        let connection = self.connection.clone()?;
        Some((connection, self.generation))
    }

    fn drop_generation(&mut self, generation: u64) {
        if self.generation == generation {
            self.connection = None;
        }
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
        Self(Arc::new(Inner {
            endpoint,
            response_timeout,
            held: Mutex::default(),
        }))
    }

    /// How long a command waits for its reply.
    pub(crate) fn response_timeout(&self) -> Duration {
        self.0.response_timeout
    }

    /// Connects now if it is not connected.
    pub(crate) async fn connect(&self) -> Result<(), BrokerError> {
        self.connection().await.map(drop)
    }

    /// Whether a command can go at once, without a look whether the connection lives.
    pub(crate) fn is_trusted(&self) -> bool {
        self.0.held.lock().is_trusted()
    }

    /// Has the next command make sure first that the connection lives.
    pub(crate) fn doubt(&self) {
        self.0.held.lock().used = None;
    }

    /// Connects if it is not connected, and makes sure that a doubtful connection lives. Before a
    /// command that must not be repeated: whether one that was sent into a dead connection has run
    /// would be unknown.
    pub(crate) async fn revive(&self) -> Result<(), BrokerError> {
        if self.is_trusted() {
            return Ok(());
        }
        match self.query(&redis::cmd("PING")).await {
            Err(BrokerError::Disconnected(_)) => self.connect().await,
            Err(error) if error.fault() == Fault::Reconnect => Err(error),
            // Whatever else Redis says, it answers.
            _ => Ok(()),
        }
    }

    async fn connection(&self) -> Connected {
        let attempt = {
            let mut held = self.0.held.lock();
            if let Some(connected) = held.take_up() {
                return Ok(connected);
            }
            self.0.attempt(&mut held)
        };
        let connected = tokio::time::timeout(self.0.patience(), attempt).await;
        connected.unwrap_or_else(|elapsed| {
            let address = self.0.endpoint.address();
            Err(BrokerError::no_connection(address, elapsed))
        })
    }
}

impl Inner {
    /// More than it takes to connect. What takes longer is on a runtime that nobody drives any more.
    fn patience(&self) -> Duration {
        self.endpoint.connect_timeout() + Duration::from_millis(500)
    }

    /// The one attempt to connect that all wait for. A task of its own, because who began it may be a
    /// future that is kept and not polled any more.
    fn attempt(self: &Arc<Self>, held: &mut Held) -> Shared<BoxFuture<'static, Connected>> {
        match &held.attempt {
            // Finished and still here: it panicked, or its runtime has ended.
            Some(it) if !it.task.is_finished() && it.since.elapsed() < self.patience() => {
                it.outcome.clone()
            }
            _ => {
                let connect = AbortOnDropHandle::new(tokio::spawn(self.clone().connect()));
                let task = connect.abort_handle();
                let outcome = connect.map(|ended| match ended {
                    Ok(connected) => connected,
                    Err(error) if error.is_panic() => resume_unwind(error.into_panic()),
                    Err(_) => Err(BrokerError::NotSent),
                });
                let outcome = outcome.boxed().shared();
                held.attempt = Some(Attempt {
                    since: Instant::now(),
                    task,
                    outcome: outcome.clone(),
                });
                outcome
            }
        }
    }

    async fn connect(self: Arc<Self>) -> Connected {
        let connection = self.endpoint.connect(self.response_timeout).await;
        let mut held = self.held.lock();
        held.attempt = None;
        let connection = connection?;
        held.runtime = Some(AbortOnDropHandle::new(tokio::spawn(pending())));
        held.generation += 1;
        held.connection = Some(connection.clone());
        Ok((connection, held.generation))
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
                let error = BrokerError::classify(error, self.0.response_timeout);
                if error.fault() == Fault::Reconnect {
                    self.0.held.lock().drop_generation(generation);
                }
                Err(error)
            }
        }
    }
}
