//! How often Redis was called, by its own count.

use redis::aio::MultiplexedConnection;

/// How many calls of a command Redis has had.
pub async fn calls_of(redis: &mut MultiplexedConnection, command: &str) -> u64 {
    let mut info = redis::cmd("INFO");
    info.arg("commandstats");
    let info: String = info.query_async(redis).await.unwrap();
    let prefix = format!("cmdstat_{command}:calls=");
    let line = info.lines().find_map(|line| line.strip_prefix(&prefix));
    line.map_or(0, |rest| rest.split(',').next().unwrap().parse().unwrap())
}
