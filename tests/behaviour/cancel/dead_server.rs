//! A task whose server is dead is taken over.

use std::time::Duration;

use redis::AsyncCommands;
use windlass::inspector::{CancelMode, ChangeOutcome};

use crate::support::{HOUR, LIMIT, Stage, eventually, puppet, task};

#[tokio::test]
#[ignore = "runs in a child process of other tests"]
async fn holds_its_tasks() {
    if let Some(stage) = Stage::of_parent().await {
        let (router, _calls) = puppet();
        stage.serve_for_ever(stage.server(), router).await;
    }
}

#[tokio::test]
async fn a_task_whose_server_was_killed_is_taken_over_long_before_its_lease_ends() {
    let stage = Stage::new("killed").await;
    let client = stage.client().await;
    let inspector = stage.inspector().await;
    for id in ["decide", "archive", "delete", "by operator"] {
        let enqueue = client.enqueue(task("x")).id(id);
        enqueue.deadline(stage.in_future(HOUR).await).await.unwrap();
    }
    let worker = stage.child("cancel::dead_server::holds_its_tasks");
    stage.wait_for_count("active", 4).await;
    worker.signal("KILL");
    drop(worker);

    // As soon as its record has run out, after three heartbeats; its leases last for 30 s.
    eventually("it counts as dead", LIMIT, async || {
        let keys: Vec<String> = stage
            .redis()
            .keys(format!("{}:server:*", stage.prefix))
            .await
            .unwrap();
        keys.is_empty().then_some(())
    })
    .await;
    for (id, mode) in [
        ("decide", CancelMode::Decide),
        ("archive", CancelMode::Archive),
        ("delete", CancelMode::Delete),
    ] {
        let answer = inspector.cancel("default", id, mode).await.unwrap();
        assert_eq!(answer, ChangeOutcome::Done, "{id}");
    }
    let answer = inspector.archive("default", "by operator").await.unwrap();
    assert_eq!(answer, ChangeOutcome::Done);
    assert_eq!(stage.state("archive").await, "archived");
    assert_eq!(stage.state("delete").await, "gone");
    for (id, reason) in [("decide", "cancelled"), ("by operator", "operator")] {
        let record = stage.record(id).await;
        assert_eq!((&*record["reason"], record.get("cancel")), (reason, None));
        assert_eq!(stage.state(id).await, "archived");
    }
    stage.audit().await;
}

#[tokio::test]
async fn a_late_word_of_a_server_that_was_taken_for_dead_changes_nothing() {
    let stage = Stage::new("taken-for-dead").await;
    let client = stage.client().await;
    let inspector = stage.inspector().await;
    let (router, mut calls) = puppet();
    let settings = stage.server().heartbeat(Duration::from_secs(10));
    let server = stage.serve_with(settings, router).await;
    client.enqueue(task("x")).id("it").await.unwrap();
    let call = calls.next().await;
    let key = format!("{}:server:{}", stage.prefix, call.context.server_id());
    let _: () = stage.redis().del(key).await.unwrap();
    let answer = inspector
        .cancel("default", "it", CancelMode::Archive)
        .await
        .unwrap();
    assert_eq!(answer, ChangeOutcome::Done);
    let before = stage.record("it").await;
    call.complete();
    let report = server.stop().await;
    assert_eq!(
        (report.stats.completed, report.stats.settles_refused),
        (0, 1)
    );
    assert_eq!(stage.record("it").await, before);
    assert_eq!(stage.ids("archived").await, ["it"]);
    stage.audit().await;
}

#[tokio::test]
async fn nothing_is_taken_over_right_after_an_outage() {
    let stage = Stage::new("grace").await;
    let inspector = stage.inspector().await;
    stage.enqueue_for_later("it").await;
    stage.lose("it").await;
    let until = stage.now().await + 1000;
    let meta = stage.key("meta");
    let _: () = stage
        .redis()
        .hset(meta, "grace_until", until)
        .await
        .unwrap();
    let archive = async || inspector.archive("default", "it").await.unwrap();
    assert!(matches!(archive().await, ChangeOutcome::Requested { .. }));
    assert_eq!(stage.state("it").await, "active");
    stage.wait_until(until).await;
    assert_eq!(archive().await, ChangeOutcome::Done);
    assert_eq!(stage.record("it").await["reason"], "operator");
}
