//! A task that runs is cancelled at its deadline; a retry that would come after it is none.

use std::time::{Duration, UNIX_EPOCH};

use windlass::handler::CancelReason;

use super::assert_expired_once;
use crate::support::{Call, HOUR, LIMIT, Stage, eventually, ms, task};

/// A task that runs when its deadline comes, and what its handler then says.
async fn cancelled_at_its_deadline(stage: &Stage, say: impl FnOnce(Call)) -> (String, u64) {
    let client = stage.client().await;
    let (server, mut calls) = stage.serve_puppet().await;
    let deadline = stage.in_future(ms(2000)).await;
    let at = deadline.duration_since(UNIX_EPOCH).unwrap().as_millis() as u64;
    let enqueued = client.enqueue(task("x")).deadline(deadline).await;
    let id = enqueued.unwrap().id;
    let call = calls.next().await;
    assert_eq!(
        stage.count("deadlines").await,
        0,
        "only what waits is there"
    );
    assert_eq!(call.cancelled().await, CancelReason::Deadline);
    say(call);
    eventually("it is settled", LIMIT, async || {
        (stage.count("active").await == 0).then_some(())
    })
    .await;
    server.stop().await;
    (id, at)
}

#[tokio::test]
async fn a_running_task_is_cancelled_at_its_deadline_and_given_up() {
    let stage = Stage::new("gives-up").await;
    let (id, at) = cancelled_at_its_deadline(&stage, |call| call.fail("cut short")).await;
    // The clocks of the handler's timer and of Redis may differ by a little.
    assert_expired_once(&stage, &id, at - 50).await;
    let record = stage.record(&id).await;
    assert_eq!(
        (&*record["last_error"], &*record["retried"]),
        (
            "its deadline passed: cancelled: the task's deadline has come: cut short",
            "1"
        )
    );
}

#[tokio::test]
async fn a_handler_that_ignores_the_deadline_is_given_up_with_its_task() {
    let stage = Stage::new("ignores").await;
    let keep = std::cell::RefCell::new(None);
    let (id, at) = cancelled_at_its_deadline(&stage, |call| drop(keep.replace(Some(call)))).await;
    assert_expired_once(&stage, &id, at - 50).await;
    let error = &stage.record(&id).await["last_error"];
    assert!(error.contains("deadline"), "{error}");
}

#[tokio::test]
async fn what_a_handler_says_at_the_deadline_wins() {
    let stage = Stage::new("completes").await;
    let (id, _) = cancelled_at_its_deadline(&stage, |call| call.complete()).await;
    assert_eq!(stage.state(&id).await, "gone");
    assert_eq!(stage.total("expired").await, 0);

    let stage = Stage::new("skips").await;
    let (id, _) = cancelled_at_its_deadline(&stage, |call| call.skip()).await;
    assert_eq!(stage.wait_for_reason(&id).await, "skipped");
}

#[tokio::test]
async fn a_timeout_that_comes_first_goes_first() {
    let stage = Stage::new("timeout").await;
    let client = stage.client().await;
    let (server, mut calls) = stage.serve_puppet().await;
    let enqueue = client.enqueue(task("x")).timeout(ms(300));
    enqueue.deadline(stage.in_future(HOUR).await).await.unwrap();
    let call = calls.next().await;
    assert_eq!(call.cancelled().await, CancelReason::Timeout);
    call.complete();
    server.stop().await;
}

#[tokio::test]
async fn a_retry_that_would_come_after_the_deadline_is_given_up_now() {
    let stage = Stage::new("too-late").await;
    let client = stage.client().await;
    let (server, mut calls) = stage.serve_puppet().await;
    let deadline = stage.in_future(HOUR).await;
    let enqueued = client.enqueue(task("x")).id("late").deadline(deadline);
    enqueued.await.unwrap();
    let call = calls.next().await;
    call.retry_after(HOUR + Duration::from_secs(60));
    assert_expired_once(&stage, "late", 0).await;
    let record = stage.record("late").await;
    assert_eq!(
        (&*record["retried"], &*record["last_error"]),
        ("1", "its deadline passed: failed")
    );
    assert_eq!(stage.total("retried").await, 0);
    assert_eq!(stage.total("failed").await, 1);

    // One that comes before it waits for its time.
    client
        .enqueue(task("x"))
        .id("early")
        .deadline(deadline)
        .await
        .unwrap();
    calls.next().await.retry_after(HOUR / 2);
    stage.wait_for_state("early", "retry").await;
    assert_eq!(stage.total("expired").await, 1);
    server.stop().await;
    stage.audit().await;
}
