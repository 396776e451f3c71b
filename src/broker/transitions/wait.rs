use std::sync::LazyLock;
use std::time::Duration;

use crate::broker::connection::{BrokerError, Query};
use crate::broker::keys::Queue;
use crate::broker::reply::Text;
use crate::broker::script::Script;

static SCRIPT: LazyLock<Script> =
    LazyLock::new(|| Script::new("wait", include_str!("../../../lua/wait.lua")));

/// How a task that somebody waits for stands.
#[derive(Debug)]
pub(crate) enum Watched {
    Waiting,
    Completed { result: Vec<u8> },
    Archived { reason: String, error: String },
    Gone,
}

/// Notes that somebody waits for a task's end for this long, and looks at it.
pub(crate) async fn wait(
    redis: &impl Query,
    queue: &Queue,
    id: &str,
    patience: Duration,
) -> Result<Watched, BrokerError> {
    let mut call = SCRIPT.on(&queue.base);
    call.arg(id).arg(patience.as_millis() as u64);
    let reply: (Text, Vec<u8>, Text, Text) = call.read(redis).await?;
    let (Text(state), result, Text(reason), Text(error)) = reply;
    match state.as_str() {
        "waiting" => Ok(Watched::Waiting),
        "completed" => Ok(Watched::Completed { result }),
        "archived" => Ok(Watched::Archived { reason, error }),
        "gone" => Ok(Watched::Gone),
        _ => Err(SCRIPT.unexpected()),
    }
}
