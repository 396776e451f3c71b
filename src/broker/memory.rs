use redis::{FromRedisValue, Value};

use crate::broker::connection::{BrokerError, Query};

/// How full Redis is, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Memory {
    pub(crate) used: u64,
    /// Its `maxmemory`.
    pub(crate) limit: u64,
}

/// Asks how full Redis is; `None` where it has no limit.
pub(crate) async fn memory(redis: &impl Query) -> Result<Option<Memory>, BrokerError> {
    let info = redis.query(redis::cmd("INFO").arg("memory")).await?;
    Ok(parse(info))
}

fn parse(info: Value) -> Option<Memory> {
    let info = String::from_redis_value(info).ok()?;
    let field = |name: &str| {
        let mut lines = info.lines().filter_map(|line| line.split_once(':'));
        let (_, value) = lines.find(|(field, _)| *field == name)?;
        value.trim().parse().ok()
    };
    let memory = Memory {
        used: field("used_memory")?,
        limit: field("maxmemory")?,
    };
    (memory.limit > 0).then_some(memory)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_a_limit_or_an_answer_redis_is_never_full() {
        let memory = |text: &str| parse(Value::BulkString(text.as_bytes().to_vec()));
        let full = "# Memory\r\nused_memory:900\r\nused_memory_rss:7\r\nmaxmemory:1000\r\n";
        let (used, limit) = (900, 1000);
        assert_eq!(memory(full), Some(Memory { used, limit }));
        assert_eq!(memory("used_memory:900\r\nmaxmemory:0\r\n"), None);
        assert_eq!(memory(""), None);
    }
}
