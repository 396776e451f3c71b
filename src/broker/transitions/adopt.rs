use std::sync::LazyLock;
use std::time::Duration;

use crate::broker::connection::{BrokerError, Query};
use crate::broker::keys::Queue;
use crate::broker::script::Script;

static SCRIPT: LazyLock<Script> =
    LazyLock::new(|| Script::new("adopt", include_str!("../../../lua/adopt.lua")));

/// nowhere → active, for records that are in no state set: with a lease that is long over, or of
/// this length where one is left. Returns how many there were.
pub(crate) async fn adopt(
    redis: &impl Query,
    queue: &Queue,
    lease: Duration,
    ids: &[String],
) -> Result<usize, BrokerError> {
    let mut call = SCRIPT.on(&queue.base);
    call.arg(lease.as_millis() as u64);
    for id in ids {
        call.arg(id);
    }
    call.read(redis).await
}
