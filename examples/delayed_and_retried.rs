//! Tasks that wait for their time, and tasks that fail.
//!
//! ```text
//! cargo run --example delayed_and_retried
//! ```

use std::error::Error;
use std::time::{Duration, Instant, SystemTime};

use serde::{Deserialize, Serialize};
use windlass::handler::DeadLetter;
use windlass::task::PayloadError;
use windlass::{Client, NewTask, Router, Server, State, Task, TaskContext, TaskError};

const QUEUE: &str = "example-retries";

#[derive(Serialize, Deserialize)]
struct Call {
    number: String,
}

impl Task for Call {
    const KIND: &'static str = "phone:call";

    fn defaults(&self, task: NewTask) -> NewTask {
        task.queue(QUEUE)
    }
}

async fn call(
    task: Call,
    State(start): State<Instant>,
    context: TaskContext,
) -> Result<(), TaskError> {
    let at = start.elapsed().as_secs_f32();
    println!("{at:4.1} s  {}, attempt {}", task.number, context.attempt());
    match task.number.as_str() {
        // No phone has this number: trying again is no use, so the task is archived at once.
        "wrong" => Err(TaskError::skip_retry("no such number")),
        // The failure itself says when to try again. Without that, the server's retry delay counts.
        "busy" if context.attempt() < 3 => Err(TaskError::retry_after(
            "the line is busy",
            Duration::from_millis(700),
        )),
        // A panic is a failure like any other. It ends neither the server nor another task.
        "cursed" => panic!("the phone explodes"),
        _ => Ok(()),
    }
}

/// Called, at least once, for each task that is given up for good.
async fn tell(letter: DeadLetter) -> Result<(), PayloadError> {
    let call: Call = letter.task()?;
    println!(
        "       {} was archived: {}: {}",
        call.number, letter.reason, letter.error
    );
    let (queue, id) = (letter.queue, letter.id);
    println!("       to see it: redis-cli HGETALL 'windlass:{{{queue}}}:t:{id}'");
    Ok(())
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let url = std::env::var("REDIS_URL").unwrap_or_else(|_| "redis://127.0.0.1/".to_owned());
    let client = Client::connect(&url).await?;
    let task = |number: &str| Call {
        number: number.into(),
    };
    client.enqueue(task("now")).await?;
    // A delay counts by Redis' clock, so the clocks of producers and workers need not agree.
    let two_seconds = Duration::from_secs(2);
    client.enqueue(task("later")).delay(two_seconds).await?;
    let at = SystemTime::now() + Duration::from_secs(3);
    client.enqueue(task("at a time")).run_at(at).await?;
    client.enqueue(task("busy")).await?;
    client.enqueue(task("wrong")).await?;
    client.enqueue(task("cursed")).max_retry(1).await?;

    let router = Router::new()
        .task(call)
        .state(Instant::now())
        .on_dead_letter(Call::KIND, tell);
    let server = Server::builder()
        .redis(&url)
        .queues([(QUEUE, 1)])
        // The default waits 15 s and more before the first retry, and longer after each failure.
        // A single task or type of task can have its own: `.retry_policy(…)`.
        .retry_delay(|_| Duration::from_secs(1))
        .build(router)
        .await?;
    let handle = server.handle();
    let all_have_ended = async move {
        while handle.stats().completed < 4 || handle.stats().archived < 2 {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    server.run_until(all_have_ended).await?;
    Ok(())
}
