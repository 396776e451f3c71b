use redis::{Cmd, from_redis_value};

use crate::broker::connection::{BrokerError, Query};
use crate::broker::keys::{Keys, Queue};
use crate::broker::reply::Text;
use crate::broker::transitions::{LeaseHolder, LeasedId};

/// How many keys Redis looks at in one step: well under a millisecond of its time.
const STEP: usize = 1_000;

/// A slow walk over the records of all queues, one bounded step at a time, that never ends.
#[derive(Debug, Default)]
pub(crate) struct RecordScan {
    cursor: Cursor,
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
            .arg(self.cursor.as_str())
            .arg("MATCH")
            .arg(keys.records_pattern())
            .arg("COUNT")
            .arg(STEP);
        let found = self.cursor.step(redis, &command).await?;
        let names = found
            .iter()
            .filter_map(|key| keys.parse_record(std::str::from_utf8(key).ok()?));
        Ok(names.collect())
    }
}

/// A walk over the leases of one queue, one bounded step at a time.
#[derive(Debug, Default)]
pub(crate) struct LeaseScan {
    cursor: Cursor,
}

impl LeaseScan {
    /// The leases of a server met in the next step that were made by claims after this one; `None`
    /// after the last step.
    pub(crate) async fn step(
        &mut self,
        redis: &impl Query,
        queue: &Queue,
        server: &str,
        after: u64,
    ) -> Result<Option<Vec<LeasedId>>, BrokerError> {
        if self.cursor.is_at_end() {
            return Ok(None);
        }
        let mut command = redis::cmd("HSCAN");
        command
            .arg(queue.key("leases"))
            .arg(self.cursor.as_str())
            .arg("COUNT")
            .arg(STEP);
        let found = self.cursor.step(redis, &command).await?;
        let leases = found.chunks_exact(2).filter_map(|pair| {
            let id = std::str::from_utf8(&pair[0]).ok()?;
            let (holder, _) = std::str::from_utf8(&pair[1]).ok()?.split_once(' ')?;
            let (number, held_by) = holder.split_once('@')?;
            let number: u64 = number.parse().ok()?;
            (held_by == server && number > after).then(|| LeasedId {
                id: id.into(),
                holder: LeaseHolder::found(holder),
            })
        });
        Ok(Some(leases.collect()))
    }
}

/// Where a walk stands, as Redis names it.
#[derive(Debug, Default)]
struct Cursor(Option<String>);

impl Cursor {
    fn as_str(&self) -> &str {
        self.0.as_deref().unwrap_or("0")
    }

    fn is_at_end(&self) -> bool {
        self.0.as_deref() == Some("0")
    }

    async fn step(
        &mut self,
        redis: &impl Query,
        command: &Cmd,
    ) -> Result<Vec<Vec<u8>>, BrokerError> {
        let unexpected = || BrokerError::Reply { script: "SCAN" };
        let reply = redis.query(command).await?;
        let (Text(cursor), found) = from_redis_value(reply).map_err(|_| unexpected())?;
        self.0 = Some(cursor);
        Ok(found)
    }
}
