//! A task that waits is given up at its deadline, wherever it waits.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use windlass::{NewTask, Router};

use super::assert_expired_once;
use crate::support::{HOUR, Stage, ms, puppet_for, task};

fn in_ms(time: SystemTime) -> u64 {
    time.duration_since(UNIX_EPOCH).unwrap().as_millis() as u64
}

/// A deadline in this long, as a time and in ms.
async fn deadline(stage: &Stage, after: Duration) -> (SystemTime, u64) {
    let time = stage.in_future(after).await;
    (time, in_ms(time))
}

#[tokio::test]
async fn while_its_queue_is_paused() {
    let stage = Stage::new("paused").await;
    let client = stage.client().await;
    stage.pause().await;
    let (server, calls) = stage.serve_puppet().await;
    let (time, at) = deadline(&stage, ms(1000)).await;
    let enqueued = client.enqueue(task("x")).deadline(time).await;
    let id = enqueued.unwrap().id;
    assert_expired_once(&stage, &id, at).await;
    assert_eq!(stage.record(&id).await.get("retried"), None);

    stage.resume().await;
    client.enqueue(task("after")).id("after").await.unwrap();
    stage.wait_for_state("after", "active").await;
    assert_eq!(calls.len(), 1, "only the other task has run");
    calls.complete_all();
    assert_eq!(server.stop().await.stats.archived, 1);
    assert_expired_once(&stage, &id, at).await;
}

#[tokio::test]
async fn while_no_server_knows_its_kind() {
    let stage = Stage::new("unknown").await;
    let client = stage.client().await;
    let (router, calls) = puppet_for(Router::new(), "other");
    let server = stage.serve(router).await;
    let (time, at) = deadline(&stage, ms(3000)).await;
    let enqueued = client.enqueue(task("x")).deadline(time).await;
    let id = enqueued.unwrap().id;
    stage.wait_for_state(&id, "scheduled").await;
    assert_expired_once(&stage, &id, at).await;
    let record = stage.record(&id).await;
    assert_eq!(
        (record.get("retried"), record.get("started_at")),
        (None, None)
    );
    assert!(calls.is_empty());
    server.stop().await;
}

#[tokio::test]
async fn while_it_is_scheduled() {
    let stage = Stage::new("scheduled").await;
    let client = stage.client().await;
    let (server, calls) = stage.serve_puppet().await;
    let (time, at) = deadline(&stage, ms(800)).await;
    let enqueue = client.enqueue(task("x")).deadline(time).delay(HOUR);
    let id = enqueue.await.unwrap().id;
    assert_expired_once(&stage, &id, at).await;
    assert!(calls.is_empty());
    server.stop().await;
}

#[tokio::test]
async fn while_it_is_snoozed_or_waits_for_its_retry() {
    for state in ["scheduled", "retry"] {
        let stage = Stage::new("again").await;
        let client = stage.client().await;
        let (server, mut calls) = stage.serve_puppet().await;
        let (time, at) = deadline(&stage, Duration::from_secs(3)).await;
        let enqueue = client.enqueue(task("x")).deadline(time);
        let id = enqueue.await.unwrap().id;
        let call = calls.next().await;
        match state {
            "retry" => call.retry_after(Duration::from_secs(2)),
            _ => call.snooze(HOUR),
        }
        stage.wait_for_state(&id, state).await;
        if state == "retry" {
            // Due before its deadline; but nobody takes it then.
            stage.pause().await;
        }
        assert_expired_once(&stage, &id, at).await;
        let failed_tries = stage.record(&id).await.get("retried").cloned();
        let wanted = (state == "retry").then(|| "1".to_owned());
        assert_eq!(failed_tries, wanted, "only its own failure");
        assert!(calls.is_empty());
        server.stop().await;
    }
}

#[tokio::test]
async fn before_any_server_is_there() {
    let stage = Stage::new("no-server").await;
    let client = stage.client().await;
    let late = |task: NewTask| task.deadline(UNIX_EPOCH);
    let tasks = (0..450).map(|n: u32| late(task(n.to_string())));
    assert!(client.enqueue_many(tasks).await.iter().all(Result::is_ok));
    client.enqueue(task("fresh")).await.unwrap();
    assert_eq!(stage.count("deadlines").await, 450);
    let (server, mut calls) = stage.serve_puppet().await;
    let call = calls.next().await;
    assert_eq!(call.payload(), "fresh");
    call.complete();
    stage.wait_for_count("archived", 450).await;
    server.stop().await;
    assert_eq!(stage.total("expired").await, 450);
    assert_eq!(stage.total("archived_deadline_passed").await, 450);
    assert_eq!(stage.total("processed").await, 1);
    assert!(calls.is_empty());
    stage.audit().await;
}

#[tokio::test]
async fn after_its_server_died() {
    let stage = Stage::new("lost").await;
    let client = stage.client().await;
    let (server, calls) = stage.serve_puppet().await;
    let enqueue = client.enqueue(task("x")).id("lost").delay(HOUR);
    let deadline = stage.in_future(HOUR).await;
    enqueue.deadline(deadline).await.unwrap();
    // As if it had come while the lease ran out.
    stage.set("lost", "deadline", 1).await;
    stage.lose("lost").await;
    assert_expired_once(&stage, "lost", 0).await;
    assert_eq!(stage.total("recovered").await, 1);
    assert!(calls.is_empty());
    server.stop().await;
}

#[tokio::test]
async fn a_deadline_that_has_not_come_changes_nothing() {
    let stage = Stage::new("early").await;
    let client = stage.client().await;
    let (server, mut calls) = stage.serve_puppet().await;
    let enqueue = client
        .enqueue(task("x"))
        .deadline(stage.in_future(HOUR).await);
    enqueue
        .start_before(stage.in_future(HOUR).await)
        .await
        .unwrap();
    calls.next().await.snooze(Duration::ZERO);
    calls.next().await.retry_after(Duration::ZERO);
    calls.next().await.complete();
    assert_eq!(server.stop().await.stats.completed, 1);
    assert_eq!(stage.count("deadlines").await, 0);
}

#[tokio::test]
async fn while_every_slot_is_taken() {
    let stage = Stage::new("taken").await;
    let (router, calls) = puppet_for(Router::new(), "kind");
    let settings = stage.server().concurrency(1);
    let server = stage.serve_with(settings, router).await;
    let running = stage.enqueue(task("runs")).await;
    stage.wait_for_state(&running, "active").await;
    let (time, at) = deadline(&stage, ms(500)).await;
    let client = stage.client().await;
    let enqueued = client.enqueue(task("waits")).deadline(time).await;
    let id = enqueued.unwrap().id;
    assert_expired_once(&stage, &id, at).await;
    assert_eq!(stage.state(&running).await, "active");
    calls.complete_all();
    assert_eq!(server.stop().await.stats.archived, 1);
}
