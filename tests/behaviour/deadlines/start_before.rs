//! A task that must start before a time.

use std::time::UNIX_EPOCH;

use windlass::Router;

use super::assert_expired_once;
use crate::support::{HOUR, Stage, ms, puppet, puppet_for, task};

#[tokio::test]
async fn a_task_that_has_not_started_by_then_is_given_up() {
    let stage = Stage::new("never").await;
    let client = stage.client().await;
    stage.pause().await;
    let (server, calls) = stage.serve_puppet().await;
    let time = stage.in_future(ms(800)).await;
    let at = time.duration_since(UNIX_EPOCH).unwrap().as_millis() as u64;
    // The earlier one of both counts.
    let enqueue = client.enqueue(task("x")).start_before(time);
    let enqueued = enqueue.deadline(stage.in_future(HOUR).await).await;
    assert_expired_once(&stage, &enqueued.unwrap().id, at).await;
    assert!(calls.is_empty());
    server.stop().await;
}

#[tokio::test]
async fn being_put_off_for_its_unknown_kind_is_no_start() {
    let stage = Stage::new("unknown").await;
    let client = stage.client().await;
    let server = stage.serve(puppet_for(Router::new(), "other").0).await;
    let time = stage.in_future(ms(3000)).await;
    let enqueued = client.enqueue(task("x")).start_before(time).await;
    let id = enqueued.unwrap().id;
    stage.wait_for_state(&id, "scheduled").await;
    assert_eq!(stage.count("deadlines").await, 1);
    assert_expired_once(&stage, &id, 0).await;
    server.stop().await;
}

#[tokio::test]
async fn a_task_that_has_started_once_is_not_hit() {
    let stage = Stage::new("started").await;
    let client = stage.client().await;
    let (server, mut calls) = stage.serve_puppet().await;
    let time = stage.in_future(ms(3000)).await;
    let at = time.duration_since(UNIX_EPOCH).unwrap().as_millis() as u64;
    let start = async |id: &str| {
        let enqueue = client.enqueue(task("x")).id(id).start_before(time);
        enqueue.await.unwrap();
    };
    start("retried").await;
    calls.next().await.retry_after(HOUR);
    for id in ["snoozed", "lost"] {
        start(id).await;
        calls.next().await.snooze(HOUR);
        stage.wait_for_state(id, "scheduled").await;
    }
    stage.lose("lost").await;
    calls.next().await.snooze(HOUR);
    start("runs on").await;
    let runs_on = calls.next().await;
    stage.wait_for_count("scheduled", 2).await;

    stage.wait_until(at + 500).await;
    assert!(!runs_on.context.is_cancelled());
    runs_on.complete();
    let inspector = stage.inspector().await;
    for id in ["retried", "snoozed", "lost"] {
        inspector.run("default", id).await.unwrap();
        let call = calls.next().await;
        assert_eq!(call.id(), id);
        call.complete();
    }
    assert_eq!(server.stop().await.stats.completed, 4);
    assert_eq!(stage.total("expired").await, 0);
    stage.audit().await;
}

#[tokio::test]
async fn a_task_handed_back_has_started() {
    let stage = Stage::new("handed-back").await;
    let client = stage.client().await;
    let (router, mut calls) = puppet();
    let server = stage.serve_with(stage.hasty_server(), router).await;
    let time = stage.in_future(ms(3000)).await;
    let at = time.duration_since(UNIX_EPOCH).unwrap().as_millis() as u64;
    client
        .enqueue(task("x"))
        .id("back")
        .start_before(time)
        .await
        .unwrap();
    let call = calls.next().await;
    server.stop().await;
    drop(call);
    stage.wait_for_state("back", "pending").await;
    stage.wait_until(at).await;
    let (server, mut calls) = stage.serve_puppet().await;
    calls.next().await.complete();
    assert_eq!(server.stop().await.stats.completed, 1);
}
