//! How fast one server drains a queue of tasks that do nothing, beside a bare loop over the same
//! scripts: what the machine gives to a program that only claims and completes.
//!
//! `cargo bench --bench drain`, with `-- --tasks N --reps N` for other sizes.

mod bare;
#[path = "../common/mod.rs"]
mod common;
mod figures;
mod scripts;
mod server;
#[path = "../../tests/support/mod.rs"]
mod support;

use common::{Failure, connect, median, option, print_circumstances};
use figures::Figures;
use redis::aio::MultiplexedConnection;
use support::RedisServer;
use windlass::Client;
use windlass::task::RawTask;

const KIND: &str = "bench:nothing";
const CONCURRENCIES: [usize; 2] = [200, 32];

#[tokio::main]
async fn main() -> Result<(), Failure> {
    let (tasks, reps) = (option("tasks", 100_000)?, option("reps", 5)?);
    let redis = RedisServer::start(&[]);
    let url = redis.url();
    let mut connection = connect(&url).await?;
    println!(
        "drain: {tasks} tasks of 64 bytes that do nothing; tasks/s, median (range) of {reps}\n"
    );
    println!(
        "concurrency   server                     calls/task   bare loop                  calls/task   ratio"
    );
    for concurrency in CONCURRENCIES {
        let (mut server, mut bare) = (Figures::default(), Figures::default());
        for _ in 0..reps {
            fill(&url, &mut connection, tasks).await?;
            let run = server::drain(&url, tasks, concurrency);
            server.measure(&mut connection, tasks, run).await?;

            fill(&url, &mut connection, tasks).await?;
            let run = bare::drain(&url, concurrency);
            bare.measure(&mut connection, tasks, run).await?;
        }
        // A machine's speed drifts: each repetition is compared with its neighbour.
        let pairs = server.rates.iter().zip(&bare.rates);
        let ratio = median(&pairs.map(|(s, b)| s / b).collect::<Vec<_>>());
        println!("{concurrency:11}   {server}   {bare}   {ratio:5.2}");
    }
    println!("\nwanted:  a ratio of at least 0.5");
    print_circumstances(&mut connection, "cargo bench --bench drain").await
}

/// Leaves these tasks, and nothing else, in Redis.
async fn fill(url: &str, redis: &mut MultiplexedConnection, tasks: usize) -> Result<(), Failure> {
    redis::cmd("FLUSHALL").exec_async(redis).await?;
    let client = Client::connect(url).await?;
    let new = (0..tasks).map(|_| RawTask::new(KIND, [b'x'; 64]));
    for result in client.enqueue_many(new).await {
        result?;
    }
    Ok(())
}
