//! How long a lock lasts.

use std::time::Duration;

use redis::AsyncCommands;
use windlass::client::Enqueued;
use windlass::{Client, Unique};

use super::{assert_duplicate_of, every_mode};
use crate::support::{HOUR, Stage, ms, task};

/// What is left of the lock of the key `key`, in ms; -1 is for ever.
async fn ttl(stage: &Stage) -> i64 {
    stage.redis().pttl(stage.key(super::LOCK)).await.unwrap()
}

#[track_caller]
fn assert_about(ttl: i64, time: Duration) {
    // What is left of a millisecond is rounded up.
    let most = time.as_millis() as i64 + 1;
    assert!((most - 30_000..=most).contains(&ttl), "{ttl} for {time:?}");
}

async fn enqueue(client: &Client, delay: Duration, unique: Unique) -> Enqueued {
    let enqueue = client.enqueue(task("x")).delay(delay);
    enqueue.unique(unique.key("key")).await.unwrap()
}

#[tokio::test]
async fn a_lock_lasts_for_the_delay_and_the_time_asked_for() {
    let stage = Stage::new("ttl").await;
    let client = stage.client().await;
    for (mode, unique) in every_mode() {
        for delay in [Duration::ZERO, HOUR] {
            let unique = unique.clone().at_most(2 * HOUR);
            let enqueued = enqueue(&client, delay, unique).await;
            assert!(enqueued.is_new(), "{mode} {delay:?}");
            assert_about(ttl(&stage).await, delay + 2 * HOUR);
            stage.remove(super::LOCK).await;
        }
    }
    let due = stage.in_future(HOUR).await;
    let at = client.enqueue(task("x")).run_at(due);
    at.unique(Unique::for_time(HOUR).key("key")).await.unwrap();
    assert_about(ttl(&stage).await, 2 * HOUR);
}

#[tokio::test]
async fn a_lock_without_a_time_lasts() {
    let stage = Stage::new("no-ttl").await;
    let client = stage.client().await;
    for (mode, unique) in every_mode() {
        if mode != "time" {
            enqueue(&client, HOUR, unique.clone()).await;
            assert_eq!(ttl(&stage).await, -1, "{mode}");
            stage.remove(super::LOCK).await;
        }
    }
}

#[tokio::test]
async fn a_lock_ends_with_its_time_though_its_task_lives() {
    let stage = Stage::new("too-long").await;
    let client = stage.client().await;
    for (mode, unique) in every_mode() {
        if mode == "started" {
            continue;
        }
        let (server, mut calls) = stage.serve_puppet().await;
        let unique = unique.key(mode).at_most(ms(1500));
        let enqueue = || client.enqueue(task("x")).unique(unique.clone());
        let first = enqueue().await.unwrap();
        assert!(first.is_new(), "{mode}");
        let call = calls.next().await;
        if mode == "done" {
            assert_duplicate_of(&first.id, &enqueue().await.unwrap());
        }
        let ends = stage.now().await + 1500;
        stage.wait_until(ends).await;
        let second = enqueue().await.unwrap();
        assert!(second.is_new(), "{mode}");
        // The end of the first one is no affair of the second one's lock.
        let other = calls.next().await;
        call.complete();
        stage.wait_for_state(&first.id, "gone").await;
        let lock = stage.key(&format!("unique:kind{{{mode}}}"));
        let holder: Option<String> = stage.redis().get(lock).await.unwrap();
        if mode == "done" {
            assert_eq!(holder, Some(format!("done {}", second.id)));
        }
        other.complete();
        stage.wait_for_state(&second.id, "gone").await;
        server.stop().await;
    }
    stage.audit().await;
}

#[tokio::test]
async fn a_lock_that_is_taken_again_lasts_no_longer_than_asked_for() {
    let stage = Stage::new("again").await;
    let client = stage.client().await;
    let (server, mut calls) = stage.serve_puppet().await;
    let unique = Unique::until_started().at_most(2 * HOUR);
    let snoozed = enqueue(&client, Duration::ZERO, unique).await;
    calls.next().await.snooze(HOUR);
    stage.wait_for_state(&snoozed.id, "scheduled").await;
    assert_about(ttl(&stage).await, 3 * HOUR);
    server.stop().await;

    let inspector = stage.inspector().await;
    inspector.delete("default", &snoozed.id).await.unwrap();
    for (mode, unique) in every_mode() {
        if mode != "time" {
            let archived = enqueue(&client, HOUR, unique.at_most(2 * HOUR)).await;
            inspector.archive("default", &archived.id).await.unwrap();
            inspector.run("default", &archived.id).await.unwrap();
            assert_about(ttl(&stage).await, 2 * HOUR);
            inspector.delete("default", &archived.id).await.unwrap();
        }
    }
    stage.audit().await;
}

#[tokio::test]
async fn a_lock_for_no_time_is_refused() {
    let stage = Stage::new("zero").await;
    let client = stage.client().await;
    for unique in [
        Unique::for_time(Duration::ZERO),
        Unique::until_done().at_most(Duration::ZERO),
        Unique::for_time(Duration::MAX),
    ] {
        let refused = client.enqueue(task("x")).unique(unique).await;
        assert!(matches!(
            refused,
            Err(windlass::client::EnqueueError::Invalid(_))
        ));
    }
    let enqueued = enqueue(&client, Duration::ZERO, Unique::for_time(ms(500))).await;
    assert!(enqueued.is_new());
    assert!((1..=500).contains(&ttl(&stage).await));
}
