use std::time::Duration;

use redis::Value;

use crate::broker::connection::{BrokerError, Link, Query};
use crate::broker::keys::Queue;

/// Blocks until one of the queues has a wake token, for at most `block`, and takes it. Returns which
/// queue's. Whoever takes a token must claim from that queue, also without a free slot, so that the
/// token is handed on while tasks remain. `unblock` of the same queue ends it early.
pub(crate) async fn wait_for_work<'a>(
    link: &Link,
    server: &str,
    unblock: &Queue,
    queues: impl Iterator<Item = &'a Queue> + Clone,
    block: Duration,
) -> Result<Option<usize>, BrokerError> {
    let mut command = redis::cmd("BLPOP");
    command.arg(format!("{}:{server}", unblock.wake()));
    for queue in queues.clone() {
        command.arg(queue.wake());
    }
    command.arg(block.as_secs_f64());
    let Value::Array(reply) = link.query(&command).await? else {
        return Ok(None);
    };
    let Some(Value::BulkString(key)) = reply.first() else {
        return Ok(None);
    };
    Ok(queues
        .into_iter()
        .position(|queue| queue.wake().as_bytes() == key.as_slice()))
}
