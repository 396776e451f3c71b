use std::sync::Arc;
use std::time::Duration;

use crate::broker::{Endpoint, Link, Pool};
use crate::defaults::BLOCK;

/// How long a wait for work may go unanswered. A little less than two blocks, so that a wait which
/// was swallowed on the way, reconnecting included, holds up work for no longer than these.
const WAKE_TIMEOUT: Duration = Duration::from_millis(2 * BLOCK.as_millis() as u64 - 100);

/// The connections of one server: one held by each component that talks to Redis all the time, and a
/// small pool for those that do now and then.
pub(crate) struct Connections {
    pub(crate) claim: Link,
    /// Blocks, so nothing else may use it but the claims that stand behind a block. Its answers may take
    /// a little longer than its blocks.
    pub(crate) wake: Link,
    pub(crate) settle: Link,
    /// The recoverer asks every other second: a pool would triple that, with signs of life.
    pub(crate) recover: Link,
    /// Used on the heartbeat's own thread only.
    pub(crate) heartbeat: Link,
    pub(crate) pool: Pool,
    /// For the control channel.
    pub(crate) endpoint: Arc<Endpoint>,
}

impl Connections {
    /// A beat that goes unanswered must not outlast the lease that it is to extend.
    pub(crate) fn new(endpoint: Arc<Endpoint>, lease: Duration) -> Self {
        let heartbeat_timeout = endpoint.command_timeout().min(lease / 3);
        Self {
            claim: Link::new(endpoint.clone()),
            wake: Link::with_response_timeout(endpoint.clone(), WAKE_TIMEOUT),
            settle: Link::new(endpoint.clone()),
            recover: Link::new(endpoint.clone()),
            heartbeat: Link::with_response_timeout(endpoint.clone(), heartbeat_timeout),
            pool: Pool::new(endpoint.clone(), 2),
            endpoint,
        }
    }
}
