//! What Redis says of what it was asked to do.

use redis::aio::MultiplexedConnection;

/// How many calls of a command Redis has had, those of scripts included.
pub async fn calls_of(redis: &mut MultiplexedConnection, command: &str) -> u64 {
    let mut info = redis::cmd("INFO");
    info.arg("commandstats");
    let info: String = info.query_async(redis).await.expect("INFO is allowed");
    let prefix = format!("cmdstat_{command}:calls=");
    let line = info.lines().find_map(|line| line.strip_prefix(&prefix));
    let calls = line.and_then(|rest| rest.split(',').next()?.parse().ok());
    calls.unwrap_or(0)
}
