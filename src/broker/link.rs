use std::sync::Arc;
use std::time::Duration;

use redis::aio::MultiplexedConnection;
use redis::{Cmd, Value};
use tokio::sync::Mutex;

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

    /// Drops the connection, which also ends a command that blocks on it.
    pub(crate) async fn disconnect(&self) {
        self.held.lock().await.connection = None;
    }

    async fn connection(&self) -> Result<(MultiplexedConnection, u64), BrokerError> {
        let mut held = self.held.lock().await;
        if let Some(connection) = &held.connection {
            return Ok((connection.clone(), held.generation));
        }
        let connection = self.endpoint.connect(self.response_timeout).await?;
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
