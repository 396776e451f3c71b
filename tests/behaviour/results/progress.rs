//! How far a handler has come.

use redis::AsyncCommands;
use windlass::handler::{CancelReason, ProgressError};
use windlass::inspector::ChangeOutcome;

use crate::support::{Call, HOUR, LIMIT, Running, Stage, eventually, task};

async fn running(stage: &Stage) -> (Running, Call) {
    let (server, mut calls) = stage.serve_puppet().await;
    let client = stage.client().await;
    client.enqueue(task("x")).retention(HOUR).await.unwrap();
    (server, calls.next().await)
}

#[track_caller]
fn assert_refused(progress: Result<(), ProgressError>) {
    assert!(
        matches!(progress, Err(ProgressError::Ended)),
        "{progress:?}"
    );
}

#[tokio::test]
async fn progress_is_seen_by_an_operator() {
    let stage = Stage::new("seen").await;
    let (server, call) = running(&stage).await;
    for (done, note, seen) in [(3, "pages", "3/10 pages"), (4, "ü\0\n", "4/10 ü\0\n")] {
        call.context.progress(done, 10, note).await.unwrap();
        let task = stage.look(call.id()).await.unwrap();
        assert_eq!(task.fields["progress"], seen);
        assert_eq!(task.state, windlass::task::TaskState::Active);
    }
    call.complete();
    server.stop().await;
    stage.audit().await;
}

#[tokio::test]
async fn a_long_note_is_cut_between_characters() {
    let stage = Stage::new("long").await;
    let (server, call) = running(&stage).await;
    call.context
        .progress(0, 0, &format!("x{}", "ü".repeat(5_000)))
        .await
        .unwrap();
    let progress = &stage.record(call.id()).await["progress"];
    assert_eq!(progress.len(), "0/0 ".len() + 1023);
    assert!(progress.ends_with('ü'));
    call.complete();
    server.stop().await;
}

#[tokio::test]
async fn progress_of_a_task_that_is_gone_is_refused_and_leaves_no_key() {
    let stage = Stage::new("gone").await;
    let (server, call) = running(&stage).await;
    let id = call.id().to_owned();
    // Nothing of it is left, neither its lease nor its record.
    let _: () = redis::pipe()
        .zrem(stage.key("active"), &id)
        .hdel(stage.key("leases"), &id)
        .del(stage.record_key(&id))
        .query_async(&mut stage.redis())
        .await
        .unwrap();
    assert_refused(call.context.progress(1, 2, "").await);
    assert_eq!(stage.keys("t:").await, [""; 0]);

    // Its lease is left, and its record is not.
    let lease = format!("{}@{} 1 1", call.context.lease(), call.context.server_id());
    let _: () = stage
        .redis()
        .hset(stage.key("leases"), &id, lease)
        .await
        .unwrap();
    assert_refused(call.context.progress(1, 2, "").await);
    assert_eq!(stage.keys("t:").await, [""; 0]);
    let _: () = stage.redis().hdel(stage.key("leases"), &id).await.unwrap();
    call.complete();
    server.stop().await;
    stage.audit().await;
}

#[tokio::test]
async fn progress_after_the_end_of_the_attempt_is_refused() {
    let stage = Stage::new("late").await;
    let (server, call) = running(&stage).await;
    let context = call.context.clone();
    call.complete();
    let before = stage.wait_for_state(context.id(), "completed").await;
    assert_refused(context.progress(1, 2, "").await);
    assert_eq!(stage.record(context.id()).await, before);
    server.stop().await;
}

#[tokio::test]
async fn progress_after_the_lease_was_lost_is_refused() {
    let stage = Stage::new("lost").await;
    let (server, call) = running(&stage).await;
    let id = call.id().to_owned();
    stage.give_away(&id).await;
    assert_refused(call.context.progress(1, 2, "").await);
    assert!(!stage.record(&id).await.contains_key("progress"));
    assert_eq!(call.cancelled().await, CancelReason::LeaseLost);
    assert_refused(call.context.progress(1, 2, "").await);
    assert!(!stage.record(&id).await.contains_key("progress"));
    call.complete();
    assert_eq!(server.stop().await.stats.leases_lost, 1);
    assert_eq!(stage.state(&id).await, "active");
}

#[tokio::test]
async fn progress_of_a_task_that_was_taken_over_is_refused() {
    let stage = Stage::new("taken-over").await;
    let (server, call) = running(&stage).await;
    let id = call.id().to_owned();
    let server_key = format!("{}:server:{}", stage.prefix, call.context.server_id());
    let inspector = stage.inspector().await;
    // As if its server were dead; until the next heartbeat says otherwise.
    eventually("it is taken over", LIMIT, async || {
        let _: () = stage.redis().del(&server_key).await.unwrap();
        match inspector.delete("default", &id).await.unwrap() {
            ChangeOutcome::Done => Ok(()),
            answer => Err(answer),
        }
    })
    .await;
    assert_refused(call.context.progress(1, 2, "").await);
    assert_eq!(stage.keys("t:").await, [""; 0]);
    call.complete();
    server.stop().await;
    stage.audit().await;
}
