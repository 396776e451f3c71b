//! First in, first out; priorities.

use redis::AsyncCommands;
use windlass::task::RawTask;
use windlass::{NewTask, Router, TaskContext};

use crate::support::{Running, Seen, Stage, seen};

fn task() -> NewTask {
    NewTask::from(RawTask::new("ordered", "x"))
}

/// A server that runs one task at a time, and says their ids.
async fn one_by_one(stage: &Stage) -> (Running, Seen<String>) {
    let (says, ids) = seen();
    let handler = move |_: RawTask, context: TaskContext| {
        let said = says.send(context.id().to_owned());
        async move { said.map_err(|error| error.to_string()) }
    };
    let settings = stage.server().concurrency(1);
    let server = stage
        .serve_with(settings, Router::new().raw("ordered", handler))
        .await;
    (server, ids)
}

#[tokio::test]
async fn tasks_run_in_the_order_of_their_enqueues() {
    let stage = Stage::new("fifo").await;
    let client = stage.client().await;
    let mut ids = Vec::new();
    for round in 0..5 {
        for _ in 0..20 {
            ids.push(client.enqueue(task()).await.unwrap().id);
        }
        let many = (0..120).map(|i| task().id(format!("{round} {i}")));
        for result in client.enqueue_many(many).await {
            ids.push(result.unwrap().id);
        }
    }
    assert_eq!(stage.ids("pending").await, ids);
    let (server, mut ran) = one_by_one(&stage).await;
    assert_eq!(ran.take(ids.len()).await, ids);
    server.stop().await;
}

#[tokio::test]
async fn a_high_priority_goes_first() {
    let stage = Stage::new("priority").await;
    let client = stage.client().await;
    for priority in [0, 3, 9, 1, 9] {
        let enqueue = client.enqueue(task()).priority(priority);
        let place = stage.count("pending").await;
        enqueue.id(format!("{priority} {place}")).await.unwrap();
    }
    let (server, mut ran) = one_by_one(&stage).await;
    assert_eq!(ran.take(5).await, ["9 2", "9 4", "3 1", "1 3", "0 0"]);
    server.stop().await;
}

#[tokio::test]
async fn a_low_priority_does_not_starve() {
    let stage = Stage::new("starve").await;
    let client = stage.client().await;
    client.enqueue(task()).id("old and low").await.unwrap();
    client.enqueue(task()).id("young and low").await.unwrap();
    // As if it had waited for ten minutes: longer than the head start of nine levels.
    let waited = -600_000_000;
    let pending = stage.key("pending");
    let _: f64 = stage
        .redis()
        .zincr(pending, "old and low", waited)
        .await
        .unwrap();
    let many = (0..50).map(|i| task().id(format!("high {i}")).priority(9));
    assert!(client.enqueue_many(many).await.iter().all(Result::is_ok));
    let (server, mut ran) = one_by_one(&stage).await;
    let ids = ran.take(52).await;
    assert_eq!(ids[0], "old and low");
    assert_eq!(ids[51], "young and low");
    server.stop().await;
}
