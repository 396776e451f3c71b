//! How a worker stops without losing work. Start it, press Ctrl-C in the middle, start it again:
//! the same task runs again, as attempt 1, because a shutdown spends no retry.
//!
//! ```text
//! cargo run --example graceful_shutdown
//! ```

use std::error::Error;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use windlass::{Client, NewTask, Router, Server, Task, TaskContext};

const QUEUE: &str = "example-shutdown";

#[derive(Serialize, Deserialize)]
struct Export {
    pages: u32,
}

impl Task for Export {
    const KIND: &'static str = "report:export";

    fn defaults(&self, task: NewTask) -> NewTask {
        task.queue(QUEUE)
    }
}

/// Looks between two steps whether it is to end. A handler that does not look is dropped at an
/// `.await` once the cancel grace is over, and its task is handed back all the same.
async fn export(task: Export, context: TaskContext) -> Result<(), String> {
    for page in 1..=task.pages {
        println!("attempt {}: page {page}", context.attempt());
        // For whoever looks: redis-cli HGET 'windlass:{example-shutdown}:t:report-1' progress
        let (page, pages) = (page.into(), task.pages.into());
        // That it could not be told is no reason to stop.
        let _ = context.progress(page, pages, "writing").await;
        tokio::select! {
            () = tokio::time::sleep(Duration::from_millis(500)) => {}
            () = context.cancelled() => {
                // Time to flush files or to note how far it came. An error while the server stops
                // is no failure: the task goes back to its old place in the queue.
                println!("stopped after page {page}: {:?}", context.cancel_reason());
                return Err("interrupted".into());
            }
        }
    }
    println!("exported; press Ctrl-C to end the worker");
    Ok(())
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    tracing_subscriber::fmt::init();
    let url = std::env::var("REDIS_URL").unwrap_or_else(|_| "redis://127.0.0.1/".to_owned());

    // The fixed id makes the second start recognise the task that the first one left.
    let client = Client::connect(&url).await?;
    let enqueued = client.enqueue(Export { pages: 30 }).id("report-1").await?;
    println!("report-1: {:?}", enqueued.outcome);

    let server = Server::builder()
        .redis(&url)
        .queues([(QUEUE, 1)])
        // For handlers to end by themselves; the default of 20 s fits into Kubernetes' 30 s.
        .shutdown_grace(Duration::from_secs(2))
        // From then on they are cancelled, and have this long to clean up.
        .cancel_grace(Duration::from_secs(3))
        .build(Router::new().task(export))
        .await?;

    // Ends at Ctrl-C or SIGTERM; a second one skips the grace. Elsewhere, `handle.stop()` does it.
    let report = server.run().await?;
    println!("completed: {}", report.stats.completed);
    println!("handed back: {}", report.stats.released);
    for task in report.still_running {
        println!("did not end in time, its lease will run out: {}", task.id);
    }
    Ok(())
}
