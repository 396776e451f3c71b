use std::sync::LazyLock;
use std::time::Duration;

use super::super::reply::Parts;
use super::super::script::Script;
use super::super::{BrokerError, Query, Queue};

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
    let reply = Parts::of(call.run(redis).await?);
    reply.and_then(parse).ok_or_else(|| SCRIPT.unexpected())
}

fn parse(mut parts: Parts) -> Option<Watched> {
    let state = parts.text()?;
    let result = parts.bytes()?;
    match state.as_str() {
        "waiting" => Some(Watched::Waiting),
        "completed" => Some(Watched::Completed { result }),
        "archived" => Some(Watched::Archived {
            reason: parts.text()?,
            error: parts.text()?,
        }),
        "gone" => Some(Watched::Gone),
        _ => None,
    }
}
