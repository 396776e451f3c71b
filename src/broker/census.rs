//! Which queues there are, and which of them somebody serves.

use std::collections::HashSet;

use futures::future::try_join_all;
use redis::{FromRedisValue, Value};

use crate::broker::connection::{BrokerError, Query};
use crate::broker::keys::{Keys, Queue};
use crate::task::check_queue;

/// The most servers that are looked at.
const SERVERS: isize = 1000;

/// All queues that tasks were ever enqueued to.
pub(crate) async fn list_of_queues(
    redis: &impl Query,
    keys: &Keys,
) -> Result<Vec<Queue>, BrokerError> {
    let names = redis
        .query(redis::cmd("SMEMBERS").arg(keys.queues()))
        .await?;
    let mut names: Vec<String> = read(names, "SMEMBERS")?;
    // What somebody else has put there is none.
    names.retain(|name| check_queue(name).is_ok());
    names.sort_unstable();
    Ok(names.iter().map(|name| keys.queue(name)).collect())
}

/// Which of these queues no live server claims from, as the servers' records say.
pub(crate) async fn unserved<'a>(
    redis: &impl Query,
    keys: &Keys,
    queues: impl Iterator<Item = &'a Queue>,
) -> Result<Vec<&'a Queue>, BrokerError> {
    let mut command = redis::cmd("ZRANGE");
    command.arg(keys.servers()).arg(0).arg(SERVERS - 1);
    let servers: Vec<String> = read(redis.query(&command).await?, "ZRANGE")?;
    let records = servers.iter().map(|server| async move {
        let mut command = redis::cmd("HGET");
        command.arg(keys.server(server)).arg("queues");
        let served: Option<String> = read(redis.query(&command).await?, "HGET")?;
        Ok::<_, BrokerError>(served)
    });
    let records = try_join_all(records).await?;
    let served = records.iter().flatten().flat_map(|record| names_in(record));
    let served: HashSet<String> = served.collect();
    Ok(queues
        .filter(|queue| !served.contains(&*queue.name))
        .collect())
}

/// The names in a server's record: each as `name=weight`, a space between them. A name may have spaces.
fn names_in(record: &str) -> Vec<String> {
    let mut names = Vec::new();
    let mut words = Vec::new();
    for word in record.split(' ') {
        match word.rsplit_once('=') {
            Some((end, weight)) if weight.parse::<u32>().is_ok() => {
                words.push(end);
                names.push(words.join(" "));
                words.clear();
            }
            _ => words.push(word),
        }
    }
    names
}

fn read<T: FromRedisValue>(value: Value, command: &'static str) -> Result<T, BrokerError> {
    T::from_redis_value(value).map_err(|_| BrokerError::Reply { script: command })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_names_of_a_record_may_have_spaces_and_equal_signs() {
        for (record, names) in [
            ("", vec![]),
            ("default=3 critical=6", vec!["default", "critical"]),
            ("of two words=1 a=b=2", vec!["of two words", "a=b"]),
        ] {
            assert_eq!(names_in(record), names, "{record:?}");
        }
    }
}
