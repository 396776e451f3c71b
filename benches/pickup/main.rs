//! How long a task waits for an idle server in another process, beside the least that Redis allows: a
//! bare `LPUSH` in one process and a bare `BLPOP` in the other.
//!
//! `cargo bench --bench pickup`, with `-- --samples N` for another number of tasks.

#[path = "../common/mod.rs"]
mod common;
mod receiver;
mod receivers;
#[path = "../../tests/support/mod.rs"]
mod support;

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use common::{Failure, connect, option, percentile, print_circumstances};
use receiver::Receiver;
use receivers::{KIND, LIST, PAYLOAD};
use redis::AsyncCommands;
use support::RedisServer;
use tokio::time::{MissedTickBehavior, interval};
use windlass::Client;
use windlass::task::RawTask;

/// Between two tasks; a bare push stands in the middle.
const PACE: Duration = Duration::from_millis(100);

#[tokio::main]
async fn main() -> Result<(), Failure> {
    if let Some((role, url)) = receiver::role() {
        return receivers::run(&role, &url).await;
    }
    let samples = option("samples", 300)?;
    let redis = RedisServer::start(&[]);
    let mut server = Receiver::start("server", &redis.url())?;
    let mut popper = Receiver::start("popper", &redis.url())?;
    let client = Client::connect(&redis.url()).await?;
    let mut connection = connect(&redis.url()).await?;

    let (mut waits, mut floor) = (Vec::new(), Vec::new());
    let mut ticks = interval(PACE / 2);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    // The first of each makes connections and loads scripts.
    for _ in 0..=samples {
        ticks.tick().await;
        client.enqueue(RawTask::new(KIND, stamp())).await?;
        waits.push(server.next().await?);
        ticks.tick().await;
        connection.lpush::<_, _, ()>(LIST, &stamp()).await?;
        floor.push(popper.next().await?);
    }
    let (waits, floor) = (&waits[1..], &floor[1..]);

    println!("pickup: from the enqueue call to the start of the handler, {samples} tasks, ms\n");
    println!("       windlass   bare pop   ratio");
    for (name, share) in [("p50", 0.5), ("p99", 0.99)] {
        let (ours, bare) = (percentile(waits, share), percentile(floor, share));
        println!("{name}   {ours:10.3}   {bare:8.3}   {:5.2}", ours / bare);
    }
    println!("\nwanted:  p50 at most twice the bare pop's, p99 at most 3 ms on a quiet machine");
    print_circumstances(&mut connection, "cargo bench --bench pickup").await
}

/// A payload that holds its time: ns since the epoch, in front of padding.
fn stamp() -> [u8; PAYLOAD] {
    let mut payload = [b'x'; PAYLOAD];
    payload[..16].copy_from_slice(&now_ns().to_le_bytes());
    payload
}

fn now_ns() -> u128 {
    // A clock before 1970 gives zero, and figures that nobody takes for real.
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default()
        .as_nanos()
}
