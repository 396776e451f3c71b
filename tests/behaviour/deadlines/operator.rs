//! An operator who runs a task wants it to run, whatever its deadline was.

use std::time::{Duration, SystemTime};

use windlass::Client;
use windlass::inspector::ChangeOutcome;

use crate::support::{HOUR, Stage, ms, task};

/// The fields of a record that give it up.
const DEADLINES: [&str; 2] = ["deadline", "start_before"];

/// A task for later, to be given up at a time.
async fn enqueue(client: &Client, field: &str, time: SystemTime) {
    let enqueue = client.enqueue(task("x")).no_timeout();
    let enqueue = match field {
        "deadline" => enqueue.deadline(time),
        _ => enqueue.start_before(time),
    };
    enqueue.id("it").delay(HOUR).await.unwrap();
}

/// Runs a task by hand and sees it through on a server.
async fn runs(stage: &Stage, id: &str) {
    let inspector = stage.inspector().await;
    assert_eq!(
        inspector.run("default", id).await.unwrap(),
        ChangeOutcome::Done
    );
    stage.audit().await;
    let record = stage.record(id).await;
    let left = DEADLINES.map(|field| record.contains_key(field));
    assert_eq!(left, [false, false], "{record:?}");
    let (server, mut calls) = stage.serve_puppet().await;
    let call = calls.next().await;
    assert_eq!(call.context.deadline(), None);
    call.complete();
    stage.wait_for_state(id, "gone").await;
    assert_eq!(server.stop().await.stats.archived, 0);
}

#[tokio::test]
async fn a_task_that_was_given_up_runs() {
    for field in DEADLINES {
        let stage = Stage::new("given-up").await;
        let client = stage.client().await;
        let time = stage.in_future(ms(300)).await;
        enqueue(&client, field, time).await;
        let (server, calls) = stage.serve_puppet().await;
        assert_eq!(stage.wait_for_reason("it").await, "deadline_passed");
        server.stop().await;
        assert!(calls.is_empty());
        runs(&stage, "it").await;
    }
}

/// Nobody has looked at the deadline yet.
#[tokio::test]
async fn a_scheduled_task_whose_deadline_has_passed_runs() {
    for field in DEADLINES {
        let stage = Stage::new("scheduled").await;
        let client = stage.client().await;
        let time = stage.in_future(ms(100)).await;
        enqueue(&client, field, time).await;
        let at = stage.record("it").await[field].parse().unwrap();
        stage.wait_until(at).await;
        runs(&stage, "it").await;
    }
}

#[tokio::test]
async fn a_deadline_in_the_future_stays() {
    let stage = Stage::new("future").await;
    let client = stage.client().await;
    let inspector = stage.inspector().await;
    for archived in [false, true] {
        let (first, last) = (
            stage.in_future(HOUR).await,
            stage.in_future(HOUR + Duration::from_secs(1)).await,
        );
        let enqueue = client.enqueue(task("x")).id("it").delay(HOUR);
        enqueue.start_before(first).deadline(last).await.unwrap();
        let before = stage.record("it").await;
        let due = stage.scores("deadlines").await;
        if archived {
            inspector.archive("default", "it").await.unwrap();
        }
        let answer = inspector.run("default", "it").await.unwrap();
        assert_eq!(answer, ChangeOutcome::Done);
        assert_eq!(stage.record("it").await, before);
        assert_eq!(stage.scores("deadlines").await, due);
        inspector.delete("default", "it").await.unwrap();
    }
}
