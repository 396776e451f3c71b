//! An enqueue that is refused leaves no lock.

use redis::AsyncCommands;
use windlass::client::EnqueueOutcome;
use windlass::{NewTask, Unique};

use super::enqueue;
use crate::support::{HOUR, Stage, task};

#[tokio::test]
async fn a_task_whose_id_exists_leaves_no_lock() {
    let stage = Stage::new("id-exists").await;
    let client = stage.client().await;
    client.enqueue(task("x")).id("taken").await.unwrap();
    for (mode, unique) in super::every_mode() {
        let refused = client.enqueue(task("y")).id("taken");
        let refused = refused.unique(unique.clone().key("key")).await.unwrap();
        assert_eq!(refused.outcome, EnqueueOutcome::Exists, "{mode}");
        assert_eq!(stage.keys("unique:").await, [""; 0], "{mode}");
        let next = enqueue(&client, unique).await;
        assert!(next.is_new(), "{mode}");
        stage.remove(super::LOCK).await;
    }
    assert!(!stage.record("taken").await.contains_key("unique"));
}

#[tokio::test]
async fn a_refused_task_of_a_list_leaves_no_lock_for_those_after_it() {
    let stage = Stage::new("in-list").await;
    let client = stage.client().await;
    let locked = |id: &str, key: &str| {
        let unique = Unique::until_done().key(key);
        NewTask::unique(task("x"), unique).id(id).delay(HOUR)
    };
    let list = [
        locked("a", "1"),
        locked("a", "2"), // its id exists, by this very call
        locked("b", "2"), // so this lock is free
        locked("c", "1"), // and this one is not
        locked("c", "3"), // the id of a refused task is free
    ];
    let answers = client.enqueue_many(list).await;
    let outcomes: Vec<_> = answers
        .iter()
        .map(|a| a.as_ref().unwrap().outcome)
        .collect();
    use EnqueueOutcome::{Duplicate, Exists, New};
    assert_eq!(outcomes, [New, Exists, New, Duplicate, New]);
    assert_eq!(answers[3].as_ref().unwrap().id, "a");
    assert_eq!(stage.ids("scheduled").await, ["a", "b", "c"]);
    assert_eq!(stage.keys("unique:").await.len(), 3);
    stage.audit().await;
}

#[tokio::test]
async fn a_duplicate_changes_nothing() {
    let stage = Stage::new("unchanged").await;
    let client = stage.client().await;
    let unique = || Unique::until_done().key("key").at_most(HOUR);
    let first = client.enqueue(task("x")).delay(HOUR).unique(unique());
    let first = first.await.unwrap();
    let before = (
        stage.record(&first.id).await,
        stage.scores("scheduled").await,
    );
    let second = client.enqueue(task("y")).priority(9).max_retry(1);
    let second = second.unique(unique().at_most(HOUR * 9)).await.unwrap();
    super::assert_duplicate_of(&first.id, &second);
    let after = (
        stage.record(&first.id).await,
        stage.scores("scheduled").await,
    );
    assert_eq!(before, after);
    assert_eq!(stage.count("pending").await, 0);
    let ttl: u64 = stage.redis().pttl(stage.key(super::LOCK)).await.unwrap();
    // Due times are rounded up to the next ms.
    let most = 2 * HOUR.as_millis() as u64 + 1;
    assert!((most - 60_000..=most).contains(&ttl), "{ttl}");
    assert_eq!(stage.total("duplicates").await, 1);
    assert_eq!(stage.total("enqueued").await, 1);
}
