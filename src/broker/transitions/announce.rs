use std::sync::LazyLock;
use std::time::Duration;

use crate::broker::connection::{BrokerError, Query};
use crate::broker::keys::Keys;
use crate::broker::script::Script;

static SCRIPT: LazyLock<Script> =
    LazyLock::new(|| Script::new("announce", include_str!("../../../lua/announce.lua")));

/// Keeps a server in the index of live ones for `lives`; zero takes it off.
pub(crate) async fn announce(
    redis: &impl Query,
    keys: &Keys,
    server: &str,
    lives: Duration,
) -> Result<(), BrokerError> {
    let mut call = SCRIPT.on(&keys.servers());
    call.arg(server).arg(lives.as_millis() as u64);
    call.run(redis).await.map(drop)
}

/// Makes sure that queues are in the set of queue names.
pub(crate) async fn list_queues(
    redis: &impl Query,
    keys: &Keys,
    names: impl Iterator<Item = impl AsRef<str>>,
) -> Result<(), BrokerError> {
    let mut command = redis::cmd("SADD");
    command.arg(keys.queues());
    for name in names {
        command.arg(name.as_ref());
    }
    redis.query(&command).await.map(drop)
}
