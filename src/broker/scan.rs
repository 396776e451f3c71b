use redis::Value;

use super::{BrokerError, Keys, Query};

/// How many keys Redis looks at in one step: well under a millisecond of its time.
const STEP: usize = 1_000;

/// A slow walk over the records of all queues, one bounded step at a time.
#[derive(Debug, Default)]
pub(crate) struct RecordScan {
    cursor: String,
}

impl RecordScan {
    /// The records met in the next step: queue and id.
    pub(crate) async fn step(
        &mut self,
        redis: &impl Query,
        keys: &Keys,
    ) -> Result<Vec<(String, String)>, BrokerError> {
        let mut command = redis::cmd("SCAN");
        command
            .arg(if self.cursor.is_empty() {
                "0"
            } else {
                &self.cursor
            })
            .arg("MATCH")
            .arg(keys.records_pattern())
            .arg("COUNT")
            .arg(STEP);
        let Value::Array(reply) = redis.query(&command).await? else {
            return Err(BrokerError::Reply { script: "SCAN" });
        };
        let [Value::BulkString(cursor), Value::Array(found)] = &reply[..] else {
            return Err(BrokerError::Reply { script: "SCAN" });
        };
        self.cursor = String::from_utf8_lossy(cursor).into_owned();
        let names = found.iter().filter_map(|key| match key {
            Value::BulkString(key) => keys.parse_record(std::str::from_utf8(key).ok()?),
            _ => None,
        });
        Ok(names.collect())
    }
}
