use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use redis::{Cmd, Value};
use tokio::sync::{Semaphore, SemaphorePermit};
use tokio::time::timeout;

use crate::broker::connection::endpoint::Endpoint;
use crate::broker::connection::error::BrokerError;
use crate::broker::connection::link::Link;
use crate::broker::connection::moment::Moment;
use crate::broker::connection::per_runtime::PerRuntime;
use crate::broker::connection::query::Query;

const LAST_LOOK: Duration = Duration::from_millis(100);

/// A few links, lent one at a time to calls that come now and then, from many places: bulk enqueues,
/// looks by hand, a server's upkeep.
#[derive(Debug)]
pub(crate) struct Pool {
    endpoint: Arc<Endpoint>,
    /// Those not lent; the one that came back last goes first.
    links: Mutex<Vec<Link>>,
    places: Semaphore,
    /// When one of them last did what it was asked to.
    worked: Moment,
}

impl Pool {
    pub(crate) fn new(endpoint: Arc<Endpoint>, size: usize) -> Self {
        let links = (0..size).map(|_| Link::new(endpoint.clone())).collect();
        Self {
            endpoint,
            links: Mutex::new(links),
            places: Semaphore::new(size),
            worked: Moment::now(),
        }
    }

    /// A link for one call, or for several in a row.
    pub(crate) async fn lend(&self) -> Result<Lent<'_>, BrokerError> {
        let place = self.place().await?;
        Ok(Lent {
            link: self
                .links
                .lock()
                .pop()
                .expect("there is one for each place"),
            pool: self,
            _place: place,
        })
    }

    /// Many may wait, and each has its turn while the calls before it get on. Only where none of them
    /// has, for as long as a command may take, it is no use to wait.
    async fn place(&self) -> Result<SemaphorePermit<'_>, BrokerError> {
        let limit = self.endpoint.command_timeout();
        let mut place = pin!(self.places.acquire());
        let mut left = limit;
        let mut is_last_look = false;
        loop {
            if let Ok(place) = timeout(left, &mut place).await {
                return Ok(place.expect("it is never closed"));
            }
            let idle = self.worked.ago();
            left = match idle < limit {
                true => limit - idle,
                false if is_last_look => return Err(BrokerError::Busy(limit)),
                // It may be this runtime that stood still. What came meanwhile is read first.
                false => LAST_LOOK,
            };
            is_last_look = idle >= limit;
        }
    }
}

impl Query for Pool {
    async fn query(&self, command: &Cmd) -> Result<Value, BrokerError> {
        self.lend().await?.query(command).await
    }
}

/// A pool for each runtime that asks.
#[derive(Debug)]
pub(crate) struct Pools {
    endpoint: Arc<Endpoint>,
    pools: PerRuntime<Pool>,
}

impl Pools {
    pub(crate) fn new(endpoint: Arc<Endpoint>, size: usize) -> Self {
        let pools = {
            let endpoint = endpoint.clone();
            PerRuntime::new(move || Pool::new(endpoint.clone(), size))
        };
        Self { endpoint, pools }
    }

    pub(crate) fn address(&self) -> String {
        self.endpoint.address()
    }
}

impl Pools {
    /// Waits for Redis as its description says.
    pub(crate) async fn reach(&self) -> Result<(), BrokerError> {
        self.pools.here().lend().await?.link.reach().await
    }
}

impl Query for Pools {
    async fn query(&self, command: &Cmd) -> Result<Value, BrokerError> {
        self.pools.here().query(command).await
    }
}

/// A link of a pool; it goes back when this is dropped.
pub(crate) struct Lent<'a> {
    link: Link,
    pool: &'a Pool,
    _place: SemaphorePermit<'a>,
}

impl Query for Lent<'_> {
    async fn query(&self, command: &Cmd) -> Result<Value, BrokerError> {
        let reply = self.link.query(command).await;
        if reply.is_ok() {
            self.pool.worked.is_now();
        }
        reply
    }
}

impl Drop for Lent<'_> {
    fn drop(&mut self) {
        // Before the place is free.
        self.pool.links.lock().push(self.link.clone());
    }
}
