use std::sync::Arc;
use std::time::Duration;

use crate::broker::{BrokerError, Endpoint, Link, Pool};
use crate::defaults::BLOCK;

/// The connections of one server: one held by each component that talks to Redis all the time, and a
/// small pool for those that do now and then.
pub(super) struct Connections {
    pub(super) claim: Link,
    /// Blocks, so nothing else may use it. Its answers may take a little longer than its blocks.
    pub(super) wake: Link,
    pub(super) settle: Link,
    /// Used on the heartbeat's own thread only.
    pub(super) heartbeat: Link,
    pub(super) pool: Pool,
    /// For the control channel.
    pub(super) endpoint: Arc<Endpoint>,
}

impl Connections {
    pub(super) fn new(endpoint: Endpoint) -> Result<Self, BrokerError> {
        let pool = Pool::new(&endpoint, 2)?;
        let endpoint = Arc::new(endpoint);
        Ok(Self {
            claim: Link::new(endpoint.clone()),
            wake: Link::with_response_timeout(endpoint.clone(), BLOCK + Duration::from_secs(1)),
            settle: Link::new(endpoint.clone()),
            heartbeat: Link::new(endpoint.clone()),
            pool,
            endpoint,
        })
    }
}
