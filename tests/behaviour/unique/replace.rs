//! Debounce: a waiting task takes what the next one brings.

use std::time::Duration;

use redis::AsyncCommands;
use windlass::{Client, EnqueueOutcome, Enqueued, Unique};

use super::assert_duplicate_of;
use crate::support::{HOUR, Stage, ms, task};

async fn edit(client: &Client, payload: &str, delay: Duration, unique: Unique) -> Enqueued {
    let enqueue = client.enqueue(task(payload)).delay(delay);
    enqueue.unique(unique.key("key")).await.unwrap()
}

#[track_caller]
fn assert_replaced(holder: &str, enqueued: &Enqueued) {
    let seen = (&*enqueued.id, enqueued.outcome);
    assert_eq!(seen, (holder, EnqueueOutcome::Replaced));
}

#[tokio::test]
async fn a_waiting_task_takes_payload_and_due_time() {
    let stage = Stage::new("debounce").await;
    let client = stage.client().await;
    let first = edit(&client, "1", HOUR, Unique::replace()).await;
    assert!(first.is_new());
    let due = stage.score("scheduled", &first.id).await.unwrap();

    // Later, then now, then later again.
    assert_replaced(
        &first.id,
        &edit(&client, "2", 2 * HOUR, Unique::replace()).await,
    );
    let later = stage.score("scheduled", &first.id).await.unwrap();
    assert!(later >= due + HOUR.as_millis() as u64, "{due} {later}");
    assert_replaced(
        &first.id,
        &edit(&client, "3", Duration::ZERO, Unique::replace()).await,
    );
    assert_eq!(stage.state(&first.id).await, "pending");
    assert_replaced(
        &first.id,
        &edit(&client, "4", HOUR, Unique::replace()).await,
    );
    assert_eq!(stage.state(&first.id).await, "scheduled");
    stage.audit().await;

    assert_replaced(
        &first.id,
        &edit(&client, "5", ms(500), Unique::replace()).await,
    );
    let due = stage.score("scheduled", &first.id).await.unwrap();
    let (server, mut calls) = stage.serve_puppet().await;
    let call = calls.next().await;
    assert!(stage.now().await >= due);
    assert_eq!((call.id(), &*call.payload()), (&*first.id, "5"));
    call.complete();
    assert_eq!(server.stop().await.stats.completed, 1);
    assert_eq!(stage.total("enqueued").await, 1);
    assert_eq!(stage.total("replaced").await, 4);
    stage.audit().await;
}

#[tokio::test]
async fn a_task_that_waits_for_its_retry_is_replaced_too() {
    let stage = Stage::new("retry").await;
    let client = stage.client().await;
    let (server, mut calls) = stage.serve_puppet().await;
    let first = edit(&client, "1", Duration::ZERO, Unique::replace()).await;
    calls.next().await.retry_after(HOUR);
    stage.wait_for_state(&first.id, "retry").await;
    assert_replaced(
        &first.id,
        &edit(&client, "2", Duration::ZERO, Unique::replace()).await,
    );
    let call = calls.next().await;
    let seen = (call.id(), &*call.payload(), call.context.retried());
    assert_eq!(seen, (&*first.id, "2", 1));
    call.complete();
    server.stop().await;
    stage.audit().await;
}

#[tokio::test]
async fn a_wait_has_its_longest_time_however_often_it_is_replaced() {
    let stage = Stage::new("max-wait").await;
    let client = stage.client().await;
    let unique = || Unique::replace().max_wait(2 * HOUR);
    let before = stage.now().await;
    let first = edit(&client, "1", HOUR, unique()).await;
    let most = stage.now().await + 2 * HOUR.as_millis() as u64;
    let least = before + 2 * HOUR.as_millis() as u64;
    for payload in ["2", "3", "4"] {
        assert_replaced(&first.id, &edit(&client, payload, 5 * HOUR, unique()).await);
        let due = stage.score("scheduled", &first.id).await.unwrap();
        assert!((least..=most).contains(&due), "{least} {due} {most}");
        assert_eq!(stage.record(&first.id).await["payload"], payload);
    }
    // What the next ones ask for does not change the first one's limit.
    let unique = Unique::replace().max_wait(9 * HOUR);
    assert_replaced(&first.id, &edit(&client, "5", 5 * HOUR, unique).await);
    let due = stage.score("scheduled", &first.id).await.unwrap();
    assert!((least..=most).contains(&due), "{least} {due} {most}");
}

#[tokio::test]
async fn the_longest_wait_bounds_the_first_delay_too() {
    let stage = Stage::new("first-wait").await;
    let client = stage.client().await;
    for wait in [HOUR, ms(500), Duration::ZERO] {
        let unique = Unique::replace().max_wait(wait);
        let first = edit(&client, "1", 5 * HOUR, unique).await;
        let most = stage.now().await + wait.as_millis() as u64;
        match stage.score("scheduled", &first.id).await {
            Some(due) => assert!(due <= most, "{due} {most}"),
            None => assert_eq!(stage.state(&first.id).await, "pending"),
        }
        stage
            .inspector()
            .await
            .delete("default", &first.id)
            .await
            .unwrap();
    }
    stage.audit().await;
}

#[tokio::test]
async fn a_running_task_lets_the_next_one_in_and_hands_the_lock_over() {
    let stage = Stage::new("hand-over").await;
    let client = stage.client().await;
    let (server, mut calls) = stage.serve_puppet().await;
    let first = edit(&client, "1", Duration::ZERO, Unique::replace()).await;
    let running = calls.next().await;
    assert_eq!(running.payload(), "1");
    let second = edit(&client, "2", HOUR, Unique::replace()).await;
    assert!(second.is_new());
    assert_replaced(
        &second.id,
        &edit(&client, "3", HOUR, Unique::replace()).await,
    );

    // The first one fails, runs again and ends: the lock is the second one's all along.
    running.retry_after(Duration::ZERO);
    let running = calls.next().await;
    assert_eq!((running.id(), &*running.payload()), (&*first.id, "1"));
    assert_replaced(
        &second.id,
        &edit(&client, "4", HOUR, Unique::replace()).await,
    );
    running.complete();
    stage.wait_for_state(&first.id, "gone").await;
    assert_replaced(
        &second.id,
        &edit(&client, "5", Duration::ZERO, Unique::replace()).await,
    );
    let last = calls.next().await;
    assert_eq!((last.id(), &*last.payload()), (&*second.id, "5"));
    last.complete();
    server.stop().await;
    assert_eq!(stage.keys("unique:").await, [""; 0]);
}

#[tokio::test]
async fn a_replaced_lock_lasts_as_long_as_the_new_due_time_needs() {
    let stage = Stage::new("ttl").await;
    let client = stage.client().await;
    let unique = || Unique::replace().at_most(HOUR);
    let first = edit(&client, "1", HOUR, unique()).await;
    assert_replaced(&first.id, &edit(&client, "2", 9 * HOUR, unique()).await);
    let ttl: u64 = stage.redis().pttl(stage.key(super::LOCK)).await.unwrap();
    let wanted = 10 * HOUR.as_millis() as u64;
    assert!((wanted - 30_000..=wanted + 1).contains(&ttl), "{ttl}");
    assert_duplicate_of(
        &first.id,
        &super::enqueue(&client, Unique::until_done()).await,
    );
}
