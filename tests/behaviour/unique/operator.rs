//! The lock of a task that an operator runs from the archive or edits.

use windlass::Unique;
use windlass::inspector::ChangeOutcome;

use super::{assert_duplicate_of, enqueue, enqueue_later, every_mode};
use crate::support::{HOUR, Stage, task};

#[tokio::test]
async fn a_task_from_the_archive_takes_its_lock_again() {
    let stage = Stage::new("again").await;
    let client = stage.client().await;
    let inspector = stage.inspector().await;
    for (mode, unique) in every_mode() {
        enqueue_later(&client, mode, unique.clone()).await;
        inspector.archive("default", mode).await.unwrap();
        assert_eq!(
            inspector.run("default", mode).await.unwrap(),
            ChangeOutcome::Done
        );
        assert_eq!(stage.state(mode).await, "pending");
        assert_duplicate_of(mode, &enqueue(&client, Unique::until_done()).await);
        inspector.delete("default", mode).await.unwrap();
        stage.remove(super::LOCK).await;
    }
    stage.audit().await;
}

#[tokio::test]
async fn a_task_whose_lock_was_taken_stays_in_the_archive() {
    let stage = Stage::new("taken").await;
    let client = stage.client().await;
    let inspector = stage.inspector().await;
    for (mode, unique) in every_mode() {
        if mode == "time" {
            continue;
        }
        enqueue_later(&client, mode, unique.clone()).await;
        inspector.archive("default", mode).await.unwrap();
        let other = enqueue_later(&client, "other", unique.clone()).await;
        assert!(other.is_new());
        let before = (stage.record(mode).await, stage.scores("archived").await);
        let answer = inspector.run("default", mode).await.unwrap();
        assert!(
            matches!(&answer, ChangeOutcome::Duplicate { holder, .. } if holder == "other"),
            "{mode}: {answer:?}"
        );
        let after = (stage.record(mode).await, stage.scores("archived").await);
        assert_eq!(before, after);

        // Once the other one has ended, nothing stands in the way.
        inspector.archive("default", "other").await.unwrap();
        assert_eq!(
            inspector.run("default", mode).await.unwrap(),
            ChangeOutcome::Done
        );
        inspector.delete("default", "other").await.unwrap();
        inspector.delete("default", mode).await.unwrap();
    }
    stage.audit().await;
}

#[tokio::test]
async fn a_lock_for_a_time_does_not_keep_its_task_in_the_archive() {
    let stage = Stage::new("throttled").await;
    let client = stage.client().await;
    let inspector = stage.inspector().await;
    enqueue_later(&client, "first", Unique::for_time(HOUR)).await;
    inspector.archive("default", "first").await.unwrap();
    assert_eq!(
        inspector.run("default", "first").await.unwrap(),
        ChangeOutcome::Done
    );
    assert_duplicate_of("first", &enqueue(&client, Unique::for_time(HOUR)).await);
}

#[tokio::test]
async fn an_edit_keeps_the_lock_of_the_payload_that_was_enqueued() {
    let stage = Stage::new("edited").await;
    let client = stage.client().await;
    let inspector = stage.inspector().await;
    let enqueue = async |payload: &str, id: &str| {
        let enqueue = client.enqueue(task(payload)).id(id).delay(HOUR);
        enqueue.unique(Unique::until_done()).await.unwrap()
    };
    assert!(enqueue("old", "first").await.is_new());
    let edited = inspector.edit("default", "first", task("new")).await;
    assert_eq!(edited.unwrap(), ChangeOutcome::Done);
    assert_duplicate_of("first", &enqueue("old", "second").await);
    assert!(enqueue("new", "third").await.is_new());
    inspector.delete("default", "first").await.unwrap();
    assert!(enqueue("old", "second").await.is_new());
    stage.audit().await;
}
