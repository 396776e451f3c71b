use std::sync::Arc;
use std::time::Duration;

use deadpool_redis::{Connection, Manager, PoolConfig, PoolError, Runtime, Timeouts};
use redis::{Cmd, Value};
use tokio::sync::Mutex;

use super::{Endpoint, Query};
use crate::broker::{BrokerError, Fault};

/// Connections for calls that come now and then, from many places: bulk enqueues, the recoverer,
/// the forwarder.
pub(crate) struct Pool {
    pool: deadpool_redis::Pool,
    address: String,
    connect_timeout: Duration,
    command_timeout: Duration,
}

impl Pool {
    pub(crate) fn new(endpoint: &Endpoint, size: usize) -> Result<Self, BrokerError> {
        let fail = |error| BrokerError::connect(error, endpoint.address());
        let command_timeout = endpoint.command_timeout();
        // Built by hand, because the library's own config drops the socket settings of the URL.
        let manager =
            Manager::new_with_config(endpoint.connection_info(), endpoint.config(command_timeout))
                .map_err(fail)?;
        let pool = deadpool_redis::Pool::builder(manager)
            .config(PoolConfig::new(size))
            .runtime(Runtime::Tokio1)
            // None of these waits has a limit by default.
            .timeouts(Timeouts {
                wait: Some(command_timeout),
                create: Some(endpoint.connect_timeout()),
                recycle: Some(command_timeout),
            })
            .build()
            .map_err(|error| BrokerError::Refused(Arc::new(error)))?;
        Ok(Self {
            pool,
            address: endpoint.address().to_owned(),
            connect_timeout: endpoint.connect_timeout(),
            command_timeout,
        })
    }

    /// Host and port, or the socket's path.
    pub(crate) fn address(&self) -> &str {
        &self.address
    }

    /// A connection for several calls in a row: the library asks it for a sign of life once, and not
    /// before each of them.
    pub(crate) async fn lend(&self) -> Result<Lent, BrokerError> {
        // One limit for all: each dead connection that it finds would cost a timeout of its own.
        let checkout = tokio::time::timeout(self.connect_timeout, self.pool.get()).await;
        let connection = match checkout {
            Ok(checkout) => checkout.map_err(|error| self.checkout_error(error))?,
            Err(elapsed) => return Err(BrokerError::no_connection(&self.address, elapsed)),
        };
        Ok(Lent {
            connection: Mutex::new(Some(connection)),
            command_timeout: self.command_timeout,
        })
    }

    fn checkout_error(&self, error: PoolError) -> BrokerError {
        match error {
            PoolError::Backend(error) => BrokerError::connect(error, &self.address),
            error => BrokerError::no_connection(&self.address, error),
        }
    }
}

impl Query for Pool {
    async fn query(&self, command: &Cmd) -> Result<Value, BrokerError> {
        self.lend().await?.query(command).await
    }
}

/// A connection of a pool.
pub(crate) struct Lent {
    /// Gone once the connection cannot be trusted any more.
    connection: Mutex<Option<Connection>>,
    command_timeout: Duration,
}

impl Query for Lent {
    async fn query(&self, command: &Cmd) -> Result<Value, BrokerError> {
        let mut held = self.connection.lock().await;
        let connection = held.as_mut().ok_or(BrokerError::NotSent)?;
        let reply = connection
            .send_packed_command(command)
            .await
            .and_then(Value::extract_error);
        reply.map_err(|error| {
            let error = BrokerError::classify(error, self.command_timeout);
            if error.fault() == Fault::Reconnect {
                // Not handed back: a broken connection would only be found out at its next checkout.
                held.take().map(Connection::take);
            }
            error
        })
    }
}
