//! Debounce: a waiting task takes what the next one brings.

use std::time::Duration;

use redis::AsyncCommands;
use windlass::client::{EnqueueOutcome, Enqueued};
use windlass::task::{RawTask, RetryPolicy};
use windlass::{Client, NewTask, Unique};

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
async fn a_waiting_task_becomes_the_next_one_but_for_its_id() {
    let stage = Stage::new("becomes").await;
    let client = stage.client().await;
    let (server, mut calls) = stage.serve_puppet().await;
    let unique = || Unique::replace().key("key").at_most(2 * HOUR);
    let soon = stage.in_future(HOUR / 2).await;
    let first = client.enqueue(task("1")).unique(unique());
    let first = first
        .max_retry(1)
        .priority(9)
        .retention(HOUR)
        .deadline(soon);
    let first = first.start_before(soon).timeout(HOUR).header("of", "1");
    let first = first.header("first", "1").await.unwrap();
    calls.next().await.retry_after(HOUR / 4);
    stage.wait_for_state(&first.id, "retry").await;
    stage.set(&first.id, "lost", 2).await;
    stage.set(&first.id, "undecodable", 2).await;

    // Each is as one that nothing was there before: all of its own, and nothing of what was.
    let late = stage.in_future(20 * HOUR).await;
    let bare = || task("2").delay(HOUR);
    let full = || {
        let full = task("3").run_at(late).max_retry(3);
        let full = full.priority(1).retention(2 * HOUR).deadline(late);
        let full = full.start_before(late).no_timeout().header("of", "3");
        full.retry_policy(RetryPolicy::fixed(HOUR))
    };
    for new in [&bare as &dyn Fn() -> NewTask, &full, &bare] {
        let other = new().unique(unique().key("other"));
        let other = client.enqueue(other).await.unwrap();
        let answer = client.enqueue(new().unique(unique())).await.unwrap();
        assert_replaced(&first.id, &answer);
        let [mut became, mut fresh] =
            [stage.record(&first.id).await, stage.record(&other.id).await];
        assert_eq!(became.remove("unique").unwrap(), "replace:kind{key}");
        assert_eq!(fresh.remove("unique").unwrap(), "replace:kind{other}");
        assert_eq!(became, fresh);
        let deadlines = [&first.id, &other.id].map(|id| stage.score("deadlines", id));
        let [became, fresh] = futures::future::join_all(deadlines).await[..] else {
            unreachable!()
        };
        assert_eq!(became, fresh);
        let inspector = stage.inspector().await;
        inspector.delete("default", &other.id).await.unwrap();
    }
    stage.audit().await;
    stage
        .inspector()
        .await
        .run("default", &first.id)
        .await
        .unwrap();
    let call = calls.next().await;
    let seen = (call.id(), &*call.payload(), call.context.retried());
    assert_eq!(seen, (&*first.id, "2", 0));
    call.complete();
    server.stop().await;
    stage.audit().await;
}

#[tokio::test]
async fn a_task_keeps_the_time_of_its_own_id() {
    let stage = Stage::new("own-id").await;
    let client = stage.client().await;
    let unique = || Unique::replace().key("key");
    let enqueue = |id: &str| {
        client
            .enqueue(task("x"))
            .id(id)
            .delay(HOUR)
            .unique(unique())
    };
    enqueue("first").await.unwrap();
    let enqueued_at = stage.record("first").await["enqueued_at"].clone();
    assert_replaced("first", &enqueue("second").await.unwrap());
    assert_eq!(stage.record("first").await["enqueued_at"], enqueued_at);
    assert_eq!(stage.state("second").await, "gone");
}

#[tokio::test]
async fn tasks_of_two_kinds_never_replace_each_other() {
    let stage = Stage::new("kinds").await;
    let client = stage.client().await;
    let (server, mut calls) = stage.serve_puppet().await;
    let enqueue = async |kind: &str, delay| {
        let unique = Unique::replace().key("key").across_kinds();
        let enqueue = client.enqueue(RawTask::new(kind, kind)).delay(delay);
        enqueue.unique(unique).await.unwrap()
    };
    let first = enqueue("kind", HOUR).await;
    assert!(first.is_new());
    assert_duplicate_of(&first.id, &enqueue("other", HOUR).await);
    assert_replaced(&first.id, &enqueue("kind", Duration::ZERO).await);

    let call = calls.next().await;
    assert_duplicate_of(&first.id, &enqueue("other", HOUR).await);
    let record = stage.record(&first.id).await;
    assert_eq!((&*record["kind"], &*record["payload"]), ("kind", "kind"));
    assert!(!record.contains_key("superseded"));
    call.complete();
    stage.wait_for_state(&first.id, "gone").await;
    assert!(enqueue("other", HOUR).await.is_new());
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

    // The lock is the second one's all along, and the first one may still succeed.
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
