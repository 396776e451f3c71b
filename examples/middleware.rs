//! Code that runs around every handler: here a stopwatch, and a switch that puts work off.
//!
//! ```text
//! cargo run --example middleware
//! ```

use std::error::Error;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use windlass::handler::{FromContext, Next, Outcome};
use windlass::{Client, NewTask, Router, Server, State, Task, TaskContext, TaskError};

const QUEUE: &str = "example-middleware";

#[derive(Serialize, Deserialize)]
struct Resize {
    image: String,
}

impl Task for Resize {
    const KIND: &'static str = "image:resize";

    fn defaults(&self, task: NewTask) -> NewTask {
        task.queue(QUEUE)
    }
}

async fn resize(task: Resize) -> Result<(), std::io::Error> {
    tokio::time::sleep(Duration::from_millis(30)).await;
    println!("    {} is resized", task.image);
    Ok(())
}

#[derive(Clone, Default)]
struct Maintenance(Arc<AtomicBool>);

/// Sees every attempt, and how it ended: also panics and payloads that cannot be decoded.
async fn stopwatch(context: TaskContext, next: Next) -> Outcome {
    let start = Instant::now();
    let outcome = next.run(context.clone()).await;
    let how = match outcome.failure() {
        None => "done".to_owned(),
        Some(failure) => format!("{} ({failure})", failure.verdict()),
    };
    println!("{} took {:?}: {how}", context.kind(), start.elapsed());
    outcome
}

/// Answers itself, without calling `next`, while there is maintenance: the handler does not run,
/// and the attempt costs no retry.
async fn wait_for_maintenance(context: TaskContext, next: Next) -> Outcome {
    match State::<Maintenance>::from_context(&context) {
        Ok(State(maintenance)) if maintenance.0.load(Relaxed) => {
            Outcome::failed(TaskError::snooze(Duration::from_millis(400)))
        }
        _ => next.run(context).await,
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    tracing_subscriber::fmt::init();
    let url = std::env::var("REDIS_URL").unwrap_or_else(|_| "redis://127.0.0.1/".to_owned());
    let client = Client::connect(&url).await?;
    let image = "cat.png".into();
    client.enqueue(Resize { image }).await?;

    // The first one is outermost, so the stopwatch also sees what the second one answers.
    let maintenance = Maintenance::default();
    let router = Router::new()
        .task(resize)
        .state(maintenance.clone())
        .middleware(stopwatch)
        .middleware(wait_for_maintenance);
    let server = Server::builder()
        .redis(&url)
        .queues([(QUEUE, 1)])
        .build(router)
        .await?;

    maintenance.0.store(true, Relaxed);
    let handle = server.handle();
    let resized = async move {
        while handle.stats().completed < 1 {
            tokio::time::sleep(Duration::from_millis(20)).await;
            if handle.stats().deferred > 0 {
                maintenance.0.store(false, Relaxed);
            }
        }
    };
    server.run_until(resized).await?;
    Ok(())
}
