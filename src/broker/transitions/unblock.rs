use std::sync::LazyLock;
use std::time::Duration;

use crate::broker::connection::{BrokerError, Query};
use crate::broker::keys::Queue;
use crate::broker::script::Script;

static SCRIPT: LazyLock<Script> =
    LazyLock::new(|| Script::new("unblock", include_str!("../../../lua/unblock.lua")));

/// Ends a server's wait for work that began before, or begins within `lasts`.
pub(crate) async fn unblock(
    redis: &impl Query,
    queue: &Queue,
    server: &str,
    lasts: Duration,
) -> Result<(), BrokerError> {
    let mut call = SCRIPT.on(&queue.base);
    call.arg(server).arg(lasts.as_millis() as u64);
    call.run(redis).await.map(drop)
}
