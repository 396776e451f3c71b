use futures::future::try_join_all;
use redis::Value;

use crate::broker::connection::{BrokerError, Query};
use crate::broker::keys::Queue;

/// How many keys one command asks for: about 50 µs of Redis' time.
const AT_ONCE: usize = 500;
/// Into how many parts a group of queues is split that has what is looked for.
const PARTS: usize = 8;

/// Which of these queues have any of these keys, by their places in the list.
pub(crate) async fn queues_with_any(
    redis: &impl Query,
    queues: &[&Queue],
    keys: &[&str],
) -> Result<Vec<usize>, BrokerError> {
    let found = keys.iter().map(|key| queues_with(redis, queues, key));
    let mut found = try_join_all(found).await?.concat();
    found.sort_unstable();
    found.dedup();
    Ok(found)
}

/// Which of these queues have this key, by their places in the list. An empty set has no key, so one
/// command finds out whether any of 500 queues has work; only where one has are they told apart.
pub(crate) async fn queues_with(
    redis: &impl Query,
    queues: &[&Queue],
    key: &str,
) -> Result<Vec<usize>, BrokerError> {
    let places: Vec<usize> = (0..queues.len()).collect();
    let mut groups: Vec<&[usize]> = places.chunks(AT_ONCE).collect();
    let mut found = Vec::new();
    while !groups.is_empty() {
        let counts = groups.iter().map(|group| async move {
            let mut command = redis::cmd("EXISTS");
            for &place in *group {
                command.arg(queues[place].key(key));
            }
            match redis.query(&command).await? {
                Value::Int(count) => Ok(usize::try_from(count).unwrap_or_default()),
                _ => Err(BrokerError::Reply { script: "EXISTS" }),
            }
        });
        let counts = try_join_all(counts).await?;
        let mut smaller = Vec::new();
        for (group, count) in groups.into_iter().zip(counts) {
            if count == group.len() {
                found.extend_from_slice(group);
            } else if count > 0 {
                smaller.extend(group.chunks(group.len().div_ceil(PARTS)));
            }
        }
        groups = smaller;
    }
    found.sort_unstable();
    Ok(found)
}
