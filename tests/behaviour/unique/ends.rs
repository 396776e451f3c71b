//! A lock is free as soon as its task has ended, in whatever way.

use std::time::SystemTime;

use windlass::Unique;
use windlass::inspector::CancelMode;

use super::{assert_duplicate_of, enqueue, enqueue_later, every_mode};
use crate::support::{Call, HOUR, Stage, puppet, task};

/// The state that a task is in afterwards, and what its handler does.
type Ending = (&'static str, fn(Call));

/// Each way in which a handler can end a task.
const ENDINGS: [Ending; 4] = [
    ("gone", |call| call.complete()),
    ("gone", |call| call.revoke()),
    ("archived", |call| call.skip()),
    ("archived", |call| call.fail("the only try")),
];

#[tokio::test]
async fn a_lock_is_free_when_its_handler_has_ended_the_task() {
    let stage = Stage::new("ended").await;
    let client = stage.client().await;
    let (server, mut calls) = stage.serve_puppet().await;
    for (mode, unique) in every_mode() {
        if mode == "time" {
            continue;
        }
        for (place, (state, end)) in ENDINGS.into_iter().enumerate() {
            let id = format!("{mode} {place}");
            let enqueue = client.enqueue(task("x")).id(&id).max_retry(0);
            let enqueued = enqueue.unique(unique.clone().key("key")).await.unwrap();
            assert!(enqueued.is_new(), "{enqueued:?}");
            end(calls.next().await);
            stage.wait_for_state(&id, state).await;
            assert_eq!(stage.keys("unique:").await, [""; 0], "{id}");
        }
    }
    server.stop().await;
    stage.audit().await;
}

#[tokio::test]
async fn a_lock_is_free_when_a_waiting_task_is_ended_from_outside() {
    let stage = Stage::new("from-outside").await;
    let client = stage.client().await;
    let inspector = stage.inspector().await;
    for (mode, unique) in every_mode() {
        if mode == "time" {
            continue;
        }
        for end in ["archive", "delete", "cancel"] {
            let id = format!("{mode} {end}");
            let enqueued = enqueue_later(&client, &id, unique.clone()).await;
            assert!(enqueued.is_new(), "{enqueued:?}");
            match end {
                "archive" => inspector.archive("default", &id).await.unwrap(),
                "delete" => inspector.delete("default", &id).await.unwrap(),
                _ => {
                    let mode = CancelMode::Decide;
                    inspector.cancel("default", &id, mode).await.unwrap()
                }
            };
            assert_eq!(stage.keys("unique:").await, [""; 0], "{id}");
        }
    }
    stage.audit().await;
}

#[tokio::test]
async fn a_lock_is_free_when_its_task_is_past_its_deadline() {
    let stage = Stage::new("deadline").await;
    let client = stage.client().await;
    let enqueue_late = client.enqueue(task("x")).deadline(SystemTime::UNIX_EPOCH);
    let unique = Unique::until_done().key("key");
    let late = enqueue_late.delay(HOUR).unique(unique).await.unwrap();
    assert!(late.is_new());
    let server = stage.serve(puppet().0).await;
    stage.wait_for_state(&late.id, "archived").await;
    assert!(
        enqueue_later(&client, "next", Unique::until_done())
            .await
            .is_new()
    );
    server.stop().await;
    stage.audit().await;
}

#[tokio::test]
async fn a_lock_for_a_time_outlives_its_task_in_every_end() {
    let stage = Stage::new("outlives").await;
    let client = stage.client().await;
    let inspector = stage.inspector().await;
    let (server, mut calls) = stage.serve_puppet().await;
    for (place, (state, end)) in ENDINGS.into_iter().enumerate() {
        let unique = Unique::for_time(HOUR).key(format!("key {place}"));
        let enqueue = || {
            client
                .enqueue(task("x"))
                .unique(unique.clone())
                .max_retry(0)
        };
        let first = enqueue().await.unwrap();
        end(calls.next().await);
        stage.wait_for_state(&first.id, state).await;
        assert_duplicate_of(&first.id, &enqueue().await.unwrap());
    }
    let deleted = enqueue_later(&client, "deleted", Unique::for_time(HOUR)).await;
    inspector.delete("default", "deleted").await.unwrap();
    assert_duplicate_of(&deleted.id, &enqueue(&client, Unique::for_time(HOUR)).await);
    assert_eq!(stage.keys("unique:").await.len(), 5);
    server.stop().await;
}

#[tokio::test]
async fn a_lock_whose_holder_has_vanished_holds_nobody() {
    let stage = Stage::new("vanished").await;
    let client = stage.client().await;
    for (mode, unique) in every_mode() {
        if mode == "time" {
            continue;
        }
        enqueue_later(&client, mode, unique.clone()).await;
        // As after a failover to a replica that had the lock and not the task.
        let _: () = redis::pipe()
            .zrem(stage.key("scheduled"), mode)
            .del(stage.record_key(mode))
            .query_async(&mut stage.redis())
            .await
            .unwrap();
        let next = enqueue_later(&client, "next", unique).await;
        assert!(next.is_new(), "{next:?}");
        stage
            .inspector()
            .await
            .delete("default", "next")
            .await
            .unwrap();
    }
    stage.audit().await;
}
