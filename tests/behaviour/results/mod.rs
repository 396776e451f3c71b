//! What a task leaves: its result, for those who wait for it, and its progress while it runs.

use std::time::Duration;

use windlass::Client;
use windlass::client::WaitOutcome;

use crate::support::{HOUR, LIMIT, Stage, eventually, task, within};

mod outage;
mod progress;
mod retention;
mod wait;
mod waiters;

type Wait = tokio::task::JoinHandle<WaitOutcome<String>>;

/// Waits in the background for a task of the queue `default`.
fn wait_for(client: &Client, id: &str) -> Wait {
    let (client, id) = (client.clone(), id.to_owned());
    tokio::spawn(async move {
        let waited = client.wait("default", &id, 2 * LIMIT).await;
        waited.expect("Redis answers")
    })
}

/// Enqueues a task whose result is kept, and waits for it; returns its id and the wait.
async fn enqueue_and_wait(stage: &Stage, client: &Client) -> (String, Wait) {
    let enqueued = client.enqueue(task("x")).retention(HOUR).await;
    let id = enqueued.unwrap().id;
    let wait = wait_for(client, &id);
    until_waited_for(stage, 1).await;
    (id, wait)
}

/// How a wait ends that must hear of it: well before it would look again by itself.
#[track_caller]
fn heard<T>(wait: tokio::task::JoinHandle<T>) -> impl Future<Output = T> {
    let wait = within("the wait ends", Duration::from_secs(9), wait);
    async { wait.await.expect("it does not panic") }
}

/// Until somebody waits for so many tasks of the queue `default`.
async fn until_waited_for(stage: &Stage, tasks: usize) {
    stage.wait_for_count("waiters", tasks).await;
}

/// How many connections hear of the ends of tasks of the queue `default`.
async fn listeners(stage: &Stage) -> u64 {
    let mut numsub = redis::cmd("PUBSUB");
    numsub.arg("NUMSUB").arg(stage.key("ended"));
    let (_, listeners): (String, u64) = numsub.query_async(&mut stage.redis()).await.unwrap();
    listeners
}

async fn until_nobody_listens(stage: &Stage) {
    eventually("nobody listens", LIMIT, async || {
        let now = listeners(stage).await;
        if now == 0 { Ok(()) } else { Err(now) }
    })
    .await;
}
