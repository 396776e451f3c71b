use std::sync::LazyLock;
use std::time::Duration;

use crate::broker::connection::{BrokerError, Query};
use crate::broker::keys::Keys;
use crate::broker::script::Script;
use crate::broker::transitions::announce::announce;

static SCRIPT: LazyLock<Script> =
    LazyLock::new(|| Script::new("publish", include_str!("../../../lua/publish.lua")));

/// Writes a server's record, which vanishes after `lives` unless it is written again.
pub(crate) async fn publish(
    redis: &impl Query,
    key: &str,
    lives: Duration,
    fields: &[(&str, String)],
) -> Result<(), BrokerError> {
    let mut call = SCRIPT.on(key);
    call.arg(lives.as_millis() as u64);
    for (field, value) in fields {
        call.arg(*field).arg(value);
    }
    call.run(redis).await.map(drop)
}

/// Takes a server off at once: its record and its place in the index.
pub(crate) async fn retire(
    redis: &impl Query,
    keys: &Keys,
    server: &str,
) -> Result<(), BrokerError> {
    announce(redis, keys, server, Duration::ZERO).await?;
    redis
        .query(redis::cmd("DEL").arg(keys.server(server)))
        .await
        .map(drop)
}
