//! How long each mode holds its lock, while its task lives.

use std::time::Duration;

use windlass::Unique;
use windlass::inspector::ChangeOutcome;

use super::{assert_duplicate_of, enqueue, enqueue_later};
use crate::support::{Call, HOUR, Stage, puppet, task};

#[tokio::test]
async fn until_done_holds_while_the_task_waits_runs_and_waits_again() {
    let stage = Stage::new("until-done").await;
    let client = stage.client().await;
    let first = enqueue(&client, Unique::until_done()).await;
    assert!(first.is_new());
    let second = enqueue(&client, Unique::until_done()).await;
    assert_duplicate_of(&first.id, &second);
    assert_eq!(second.require_new().unwrap_err().id, first.id);

    let (server, mut calls) = stage.serve_puppet().await;
    let call = calls.next().await;
    assert_duplicate_of(&first.id, &enqueue(&client, Unique::until_done()).await);
    call.retry_after(HOUR);
    stage.wait_for_state(&first.id, "retry").await;
    assert_duplicate_of(&first.id, &enqueue(&client, Unique::until_done()).await);

    let inspector = stage.inspector().await;
    let ran = inspector.run("default", &first.id).await.unwrap();
    assert_eq!(ran, ChangeOutcome::Done);
    calls.next().await.snooze(HOUR);
    stage.wait_for_state(&first.id, "scheduled").await;
    assert_duplicate_of(&first.id, &enqueue(&client, Unique::until_done()).await);
    inspector.run("default", &first.id).await.unwrap();
    calls.next().await.complete();
    stage.wait_for_state(&first.id, "gone").await;

    assert_eq!(stage.keys("unique:").await, [""; 0]);
    assert!(enqueue(&client, Unique::until_done()).await.is_new());
    assert_eq!(stage.total("duplicates").await, 4);
    server.handle.stop();
}

#[tokio::test]
async fn until_done_frees_the_lock_at_completion_also_when_the_result_is_kept() {
    let stage = Stage::new("kept").await;
    let client = stage.client().await;
    let (server, mut calls) = stage.serve_puppet().await;
    let first = client.enqueue(task("x")).retention(HOUR);
    let first = first.unique(Unique::until_done().key("key")).await.unwrap();
    calls.next().await.complete();
    stage.wait_for_state(&first.id, "completed").await;
    assert!(enqueue(&client, Unique::until_done()).await.is_new());
    calls.next().await.complete();
    server.stop().await;
    stage.audit().await;
}

#[tokio::test]
async fn until_started_holds_until_the_task_is_claimed() {
    let stage = Stage::new("until-started").await;
    let client = stage.client().await;
    let first = enqueue_later(&client, "first", Unique::until_started()).await;
    assert!(first.is_new());
    assert_duplicate_of("first", &enqueue(&client, Unique::until_started()).await);

    let (server, mut calls) = stage.serve_puppet().await;
    let inspector = stage.inspector().await;
    inspector.run("default", "first").await.unwrap();
    let running = calls.next().await;
    let second = enqueue_later(&client, "second", Unique::until_started()).await;
    assert!(second.is_new());

    // The first one's failure and next start are no affair of the second one's lock.
    running.retry_after(Duration::ZERO);
    let running = calls.next().await;
    assert_eq!((running.id(), running.context.attempt()), ("first", 2));
    running.complete();
    stage.wait_for_state("first", "gone").await;
    assert_duplicate_of("second", &enqueue(&client, Unique::until_started()).await);
    server.stop().await;
    stage.audit().await;
}

#[tokio::test]
async fn a_task_that_waits_once_more_takes_its_start_lock_again_if_it_is_free() {
    let again = [
        ("snoozed", "scheduled"),
        ("failed", "retry"),
        ("lost", "retry"),
    ];
    for (why, state) in again {
        let stage = Stage::new(why).await;
        let client = stage.client().await;
        let (router, mut calls) = puppet();
        let settings = stage.server().lost_lease_delay(HOUR);
        let server = stage.serve_with(settings, router).await;
        let put_off = async |call: Call| {
            let id = call.id().to_owned();
            match why {
                "snoozed" => call.snooze(HOUR),
                "failed" => call.retry_after(HOUR),
                _ => {
                    stage.lose(&id).await;
                    call.cancelled().await;
                }
            }
            stage.wait_for_state(&id, state).await;
        };
        let first = enqueue(&client, Unique::until_started()).await;
        put_off(calls.next().await).await;
        assert_duplicate_of(&first.id, &enqueue(&client, Unique::until_started()).await);

        let inspector = stage.inspector().await;
        inspector.run("default", &first.id).await.unwrap();
        let running = calls.next().await;
        let second = enqueue_later(&client, "second", Unique::until_started()).await;
        assert!(second.is_new());
        put_off(running).await;
        assert_duplicate_of("second", &enqueue(&client, Unique::until_started()).await);
        server.stop().await;
        stage.audit().await;
    }
}

#[tokio::test]
async fn a_task_handed_back_takes_its_start_lock_again_if_it_is_free() {
    for taken in [false, true] {
        let stage = Stage::new("handed-back").await;
        let client = stage.client().await;
        let (router, mut calls) = puppet();
        let server = stage.serve_with(stage.hasty_server(), router).await;
        let first = enqueue(&client, Unique::until_started()).await;
        let _call = calls.next().await;
        let mut holder = first.id.clone();
        if taken {
            holder = enqueue_later(&client, "second", Unique::until_started())
                .await
                .id;
        }
        assert_eq!(server.stop().await.stats.released, 1);
        stage.wait_for_state(&first.id, "pending").await;
        assert_duplicate_of(&holder, &enqueue(&client, Unique::until_started()).await);
        stage.audit().await;
    }
}

#[tokio::test]
async fn recoveries_do_not_conflict_with_the_task_itself() {
    let stage = Stage::new("recovered").await;
    let client = stage.client().await;
    let (server, mut calls) = stage.serve_puppet().await;
    for (mode, unique) in super::every_mode() {
        let first = enqueue_later(&client, mode, unique.clone()).await;
        assert!(first.is_new());
        stage.lose(mode).await;
        let call = calls.next().await;
        assert_eq!((call.id(), call.context.attempt()), (mode, 2));
        call.complete();
        stage.wait_for_state(mode, "gone").await;
        if mode == "time" {
            assert_duplicate_of(mode, &enqueue_later(&client, "next", unique).await);
            stage.remove(super::LOCK).await;
        }
    }
    server.stop().await;
    stage.audit().await;
}
