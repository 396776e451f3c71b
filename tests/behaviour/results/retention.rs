//! How long a result is kept.

use std::time::Duration;

use redis::AsyncCommands;
use windlass::Router;
use windlass::client::WaitOutcome;
use windlass::task::{RawTask, TaskState};

use crate::support::{HOUR, LIMIT, Stage, ms, task};

#[tokio::test]
async fn a_result_is_kept_for_the_retention_and_gone_after_it() {
    let stage = Stage::new("kept").await;
    let client = stage.client().await;
    let (server, mut calls) = stage.serve_puppet().await;
    let enqueued = client.enqueue(task("x")).retention(ms(3000)).await;
    let id = enqueued.unwrap().id;
    let before = stage.now().await;
    calls.next().await.complete_with("the result");
    let record = stage.wait_for_state(&id, "completed").await;
    let completed_at: u64 = record["completed_at"].parse().unwrap();
    assert!((before..=stage.now().await).contains(&completed_at));
    let until = stage.score("completed", &id).await.unwrap();
    assert_eq!(until, completed_at + 3000);

    let kept = stage.look(&id).await.unwrap();
    assert_eq!(
        (kept.state, kept.kind.as_str()),
        (TaskState::Completed, "kind")
    );
    for _ in 0..2 {
        let waited = client.wait::<String>("default", &id, Duration::ZERO).await;
        assert_eq!(
            waited.unwrap(),
            WaitOutcome::Completed("the result".to_owned())
        );
    }

    stage.wait_for_state(&id, "gone").await;
    assert!(stage.now().await > until, "it was kept for its whole time");
    let waited = client.wait::<String>("default", &id, Duration::ZERO).await;
    assert_eq!(waited.unwrap(), WaitOutcome::Gone);
    assert_eq!(stage.look(&id).await, None);
    assert_eq!(stage.keys("t:").await, [""; 0]);
    let report = server.stop().await;
    assert_eq!((report.stats.completed, report.stats.swept), (1, 1));
    assert_eq!(stage.total("swept_completed").await, 1);
}

#[tokio::test]
async fn without_a_retention_nothing_is_kept() {
    let stage = Stage::new("none").await;
    let client = stage.client().await;
    let (server, mut calls) = stage.serve_puppet().await;
    for enqueue in [
        client.enqueue(task("x")),
        client.enqueue(task("x")).retention(Duration::ZERO),
    ] {
        let id = enqueue.await.unwrap().id;
        calls.next().await.complete_with("lost");
        stage.wait_for_state(&id, "gone").await;
        assert_eq!(stage.keys("t:").await, [""; 0]);
    }
    server.stop().await;
}

#[tokio::test]
async fn a_kept_task_shows_how_it_ended_and_not_how_it_failed_before() {
    let stage = Stage::new("clean").await;
    let client = stage.client().await;
    let (server, mut calls) = stage.serve_puppet().await;
    let enqueued = client.enqueue(task("x")).retention(HOUR).await;
    let id = enqueued.unwrap().id;
    calls.next().await.retry_after(Duration::ZERO);
    calls.next().await.complete_with("at last");
    let record = stage.wait_for_state(&id, "completed").await;
    let fields: Vec<_> = record.keys().map(String::as_str).collect();
    let wanted = [
        "completed_at",
        "kind",
        "payload",
        "result",
        "retention",
        "retried",
        "started_at",
    ];
    assert_eq!(fields, wanted);
    server.stop().await;
    stage.audit().await;
}

#[tokio::test]
async fn a_kept_task_that_succeeded_at_once_shows_when_it_started() {
    let stage = Stage::new("started").await;
    let client = stage.client().await;
    let (server, mut calls) = stage.serve_puppet().await;
    let before = stage.now().await;
    let enqueued = client.enqueue(task("x")).retention(HOUR).await;
    let id = enqueued.unwrap().id;
    calls.next().await.complete();
    let record = stage.wait_for_state(&id, "completed").await;
    let at = |field: &str| record[field].parse::<u64>().unwrap();
    assert!(before <= at("started_at") && at("started_at") <= at("completed_at"));
    server.stop().await;
}

#[tokio::test]
async fn a_result_that_is_too_large_archives_its_task() {
    let stage = Stage::new("large").await;
    let client = stage.client().await;
    let router = Router::new().raw("kind", |task: RawTask| async move {
        let bytes: usize = String::from_utf8(task.payload)?.parse()?;
        Ok::<_, anyhow::Error>("r".repeat(bytes))
    });
    let server = stage.serve(router).await;
    // With its header of five bytes, the first one has just the cap's size.
    let fits = client.enqueue(task("1048571")).id("fits").retention(HOUR);
    let large = client.enqueue(task("1048572")).id("large").retention(HOUR);
    fits.await.unwrap();
    large.await.unwrap();
    client.enqueue(task("1048572")).id("unkept").await.unwrap();
    stage.wait_for_state("fits", "completed").await;
    let result: Vec<u8> = stage
        .redis()
        .hget(stage.record_key("fits"), "result")
        .await
        .unwrap();
    assert_eq!(result.len(), 1024 * 1024);
    let record = stage.wait_for_state("large", "archived").await;
    assert_eq!(record["reason"], "skipped");
    assert!(record["last_error"].contains("1048577 bytes"));
    stage.wait_for_state("unkept", "gone").await;
    server.stop().await;
}

#[tokio::test]
async fn a_revoked_task_is_dropped_whatever_its_retention() {
    let stage = Stage::new("revoked").await;
    let client = stage.client().await;
    let (server, mut calls) = stage.serve_puppet().await;
    let enqueued = client.enqueue(task("x")).retention(HOUR).await;
    let id = enqueued.unwrap().id;
    let call = calls.next().await;
    let wait = client.wait::<String>("default", &id, LIMIT);
    let (told, ()) = tokio::join!(wait, async { call.revoke() });
    assert!(matches!(told, Ok(WaitOutcome::Gone)), "{told:?}");
    stage.wait_for_state(&id, "gone").await;
    // Its id is free again.
    let again = client.enqueue(task("x")).id(&id).await.unwrap();
    assert!(again.is_new());
    calls.next().await.complete();
    server.stop().await;
}
