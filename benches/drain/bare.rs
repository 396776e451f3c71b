use redis::aio::MultiplexedConnection;
use redis::{Script, Value};
use tokio::task::JoinSet;

use crate::common::{Failure, connect};
use crate::scripts;

/// The base of the queue's keys, as the library names them.
const QUEUE: &str = "windlass:{default}";
/// As long as a server's id is.
const SERVER: &str = "01ARZ3NDEKTSV4RRFFQ69G5FAV";
/// As many as a server has for claiming and settling.
const CONNECTIONS: usize = 2;
/// The most that one call of the library takes.
const BATCH: usize = 200;

const LEASE_MS: usize = 30_000;
const BYTES: usize = 1024 * 1024;

/// Claims and completes until nothing is left. Each connection takes as many tasks a call as the server
/// has places in all.
pub async fn drain(url: &str, concurrency: usize) -> Result<(), Failure> {
    let mut loops = JoinSet::new();
    for _ in 0..CONNECTIONS {
        let redis = connect(url).await?;
        loops.spawn(claim_and_complete(redis, concurrency.min(BATCH)));
    }
    while let Some(ended) = loops.join_next().await {
        ended??;
    }
    Ok(())
}

async fn claim_and_complete(mut redis: MultiplexedConnection, batch: usize) -> Result<(), Failure> {
    let (claim, complete) = (scripts::claim(), scripts::complete());
    loop {
        let mut call = start(&claim);
        call.arg(SERVER).arg(batch).arg(LEASE_MS).arg(BYTES);
        // Whenever it runs, and without dead-letter hooks.
        call.arg("").arg("");
        let reply = call.invoke_async(&mut redis).await?;
        let Some((number, ids)) = leases(reply) else {
            return Ok(());
        };
        let holder = format!("{number}@{SERVER}");
        let mut call = start(&complete);
        for id in ids {
            // Neither a lock nor a retention, and no result.
            call.arg(id).arg(&holder).arg(0).arg("");
        }
        let _: Value = call.invoke_async(&mut redis).await?;
    }
}

/// A call on the queue, with Redis' own clock.
fn start(script: &Script) -> redis::ScriptInvocation<'_> {
    let mut call = script.key(QUEUE);
    call.arg("");
    call
}

/// The lease number and the ids of a claim's reply; `None` when there are none.
fn leases(reply: Value) -> Option<(i64, Vec<Vec<u8>>)> {
    let Value::Array(parts) = reply else {
        return None;
    };
    let mut parts = parts.into_iter();
    let Some(Value::Int(number)) = parts.next() else {
        return None;
    };
    // The time, whether there are more, and when the next is due.
    let Some(Value::Int(tasks)) = parts.nth(3) else {
        return None;
    };
    let ids = (0..tasks).map_while(|_| {
        let Some(Value::BulkString(id)) = parts.next() else {
            return None;
        };
        // Its record follows, and the length of that.
        if let Some(Value::Int(values)) = parts.next() {
            parts.by_ref().take(values as usize).for_each(drop);
        }
        Some(id)
    });
    let ids: Vec<_> = ids.collect();
    (!ids.is_empty()).then_some((number, ids))
}
