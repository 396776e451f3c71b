//! A producer and a worker in one file: three tasks go into Redis and are run.
//!
//! ```text
//! cargo run --example quickstart
//! ```

use std::error::Error;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use windlass::{Client, Router, Server, Task, TaskContext};

/// What a task carries. It is stored in Redis as MessagePack, so only data goes in here: no
/// connections, no handles.
#[derive(Serialize, Deserialize)]
struct Greet {
    name: String,
}

impl Task for Greet {
    /// Ties the two sides together: the worker finds the handler by this name. They may be
    /// different programs, so do not rename it while tasks are queued.
    const KIND: &'static str = "greet";
}

/// The handler. An `Err` or a panic would be retried: 25 times by default, with growing delays.
async fn greet(task: Greet, context: TaskContext) -> Result<(), std::io::Error> {
    println!("hello, {}! (task {})", task.name, context.id());
    Ok(())
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    // Both sides report through `tracing`; without a subscriber nobody sees their warnings.
    tracing_subscriber::fmt::init();
    let url = std::env::var("REDIS_URL").unwrap_or_else(|_| "redis://127.0.0.1/".to_owned());

    // The producer, which in real life is your web service. Once an enqueue has returned, the task
    // is in Redis, and is run whatever happens to this process.
    let client = Client::connect(&url).await?;
    for name in ["Ada", "Grace", "Barbara"] {
        let task = Greet { name: name.into() };
        client.enqueue(task).await?;
    }

    // The worker, which in real life is a process of its own, with as many copies as you like.
    let router = Router::new().task(greet);
    let server = Server::builder().redis(&url).build(router).await?;

    // A real worker calls `server.run()`, which ends at SIGTERM or Ctrl-C. This one has seen enough
    // after three tasks.
    let handle = server.handle();
    let three_are_done = async move {
        while handle.stats().completed < 3 {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    let report = server.run_until(three_are_done).await?;
    println!("{} tasks completed", report.stats.completed);
    Ok(())
}
