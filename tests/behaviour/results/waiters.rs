//! Many who wait, and nobody who does.

use futures::future::join_all;
use windlass::client::WaitOutcome;
use windlass::inspector::CancelMode;
use windlass::task::RawTask;
use windlass::{Client, Router, TaskError};

use super::{heard, listeners, until_nobody_listens, until_waited_for, wait_for};
use crate::support::{HOUR, LIMIT, Proxy, RedisServer, Stage, calls_of, eventually, task};

#[tokio::test]
async fn two_hundred_who_wait_share_one_subscription() {
    let stage = Stage::new("shared").await;
    let proxy = Proxy::start(RedisServer::shared().port());
    let client = Client::builder().redis(stage.config_of(&proxy.url()));
    let client = client.connect().await.unwrap();
    let ids: Vec<_> = (0..100).map(|n| n.to_string()).collect();
    let tasks = ids.iter().map(|id| task("x").id(id).retention(HOUR));
    assert!(client.enqueue_many(tasks).await.iter().all(Result::is_ok));
    // Each task is waited for twice.
    let waits: Vec<_> = [&ids, &ids]
        .into_iter()
        .flatten()
        .map(|id| wait_for(&client.clone(), id))
        .collect();
    until_waited_for(&stage, 100).await;
    assert_eq!(listeners(&stage).await, 1);
    let subscribed = proxy.open();
    let subscribed = subscribed
        .iter()
        .filter(|open| open.commands.contains("SUBSCRIBE"));
    assert_eq!(subscribed.count(), 1);

    let (server, mut calls) = stage.serve_puppet().await;
    for _ in 0..100 {
        let call = calls.next().await;
        let id = call.id().to_owned();
        call.complete_with(&id);
    }
    for (wait, id) in waits.into_iter().zip([&ids, &ids].into_iter().flatten()) {
        assert_eq!(heard(wait).await, WaitOutcome::Completed(id.clone()));
    }
    assert_eq!(stage.count("waiters").await, 0);
    server.stop().await;
    // What nobody needs any more goes.
    until_nobody_listens(&stage).await;
}

#[tokio::test]
async fn one_who_waits_again_later_subscribes_again() {
    let stage = Stage::new("again").await;
    let client = stage.client().await;
    let (server, mut calls) = stage.serve_puppet().await;
    for round in 0..2 {
        let enqueued = client.enqueue(task("x")).retention(HOUR).await;
        let wait = wait_for(&client, &enqueued.unwrap().id);
        until_waited_for(&stage, 1).await;
        calls.next().await.complete();
        heard(wait).await;
        if round == 0 {
            until_nobody_listens(&stage).await;
        }
    }
    server.stop().await;
}

#[tokio::test]
async fn ends_that_nobody_waits_for_are_not_published() {
    let redis = RedisServer::start(&[]);
    let stage = Stage::on(&redis, "quiet").await;
    let client = stage.client().await;
    let inspector = stage.inspector().await;
    let router = Router::new().raw("kind", |task: RawTask| async move {
        match &*task.payload {
            b"skip" => Err(TaskError::skip_retry("never")),
            _ => Ok("result"),
        }
    });
    let server = stage.serve(router).await;
    // Both have tried their channels.
    let before = calls_of(&mut stage.redis(), "publish").await;
    for n in 0..100 {
        let enqueue = client.enqueue(task(if n % 3 == 0 { "skip" } else { "x" }));
        let retention = if n % 2 == 0 { HOUR } else { Default::default() };
        enqueue.retention(retention).await.unwrap();
    }
    stage.wait_for_count("archived", 34).await;
    for id in ["archived", "deleted", "cancelled"] {
        stage.enqueue_for_later(id).await;
    }
    inspector.archive("default", "archived").await.unwrap();
    inspector.delete("default", "deleted").await.unwrap();
    let cancel = inspector.cancel("default", "cancelled", CancelMode::Delete);
    cancel.await.unwrap();
    let drained =
        async || (stage.count("pending").await + stage.count("active").await == 0).then_some(());
    eventually("all have ended", LIMIT, drained).await;
    assert_eq!(calls_of(&mut stage.redis(), "publish").await, before);

    // To know that they would have been seen.
    let waited = client.enqueue(task("x")).id("waited").delay(HOUR);
    waited.await.unwrap();
    let waits = join_all([wait_for(&client, "waited"), wait_for(&client, "waited")]);
    until_waited_for(&stage, 1).await;
    client.enqueue(task("x")).await.unwrap();
    inspector.run("default", "waited").await.unwrap();
    waits.await;
    assert_eq!(calls_of(&mut stage.redis(), "publish").await, before + 1);
    server.stop().await;
}
