//! The fields of a record: each is there only when it differs from its default or has happened.

use std::collections::BTreeMap;
use std::time::Duration;

use tokio::sync::mpsc::UnboundedSender;
use windlass::task::RawTask;
use windlass::{Router, State, TaskContext, TaskError, defaults};

use crate::support::{Stage, seen};

fn task() -> RawTask {
    RawTask::new("record", "payload")
}

/// The fields that each record has, and these.
fn fields(more: &[(&str, &str)]) -> BTreeMap<String, String> {
    let always = [("kind", "record"), ("payload", "payload")];
    let all = always.iter().chain(more);
    all.map(|(k, v)| (k.to_string(), v.to_string())).collect()
}

#[tokio::test]
async fn defaults_are_not_stored() {
    let stage = Stage::new("defaults").await;
    let client = stage.client().await;
    let plain = client.enqueue(task()).await.unwrap().id;
    assert_eq!(stage.record(&plain).await, fields(&[]));
    let form = client.enqueue(task());
    let form = form.priority(0).max_retry(defaults::MAX_RETRY);
    let explicit = form.timeout(defaults::TASK_TIMEOUT).await.unwrap().id;
    assert_eq!(stage.record(&explicit).await, fields(&[]));
}

#[tokio::test]
async fn an_own_id_comes_with_its_time() {
    let stage = Stage::new("own-id").await;
    let client = stage.client().await;
    let before = stage.now().await;
    client.enqueue(task()).id("mine").await.unwrap();
    let record = stage.record("mine").await;
    let enqueued_at: u64 = record["enqueued_at"].parse().unwrap();
    assert!((before..=stage.now().await).contains(&enqueued_at));
    assert_eq!(record.len(), 3, "{record:?}");
}

#[tokio::test]
async fn options_are_stored_as_plain_numbers() {
    let stage = Stage::new("options").await;
    let client = stage.client().await;
    let form = client.enqueue(task()).priority(9).max_retry(0);
    let all = form.timeout(Duration::from_millis(1_500)).await.unwrap().id;
    let expected = fields(&[("priority", "9"), ("max_retry", "0"), ("timeout", "1500")]);
    assert_eq!(stage.record(&all).await, expected);
    let untimed = client.enqueue(task()).no_timeout().await.unwrap().id;
    assert_eq!(stage.record(&untimed).await, fields(&[("timeout", "0")]));
    let delayed = client.enqueue(task()).delay(Duration::from_secs(9));
    let delayed = delayed.await.unwrap().id;
    assert_eq!(
        stage.record(&delayed).await,
        fields(&[]),
        "its score has it"
    );
}

async fn claimed(_: RawTask, context: TaskContext, State(says): State<Says>) -> Result<(), String> {
    says.send(context.id().to_owned())
        .map_err(|e| e.to_string())?;
    std::future::pending().await
}

type Says = UnboundedSender<String>;

#[tokio::test]
async fn a_claim_leaves_the_record_alone() {
    let stage = Stage::new("claimed").await;
    let (says, mut claims) = seen::<String>();
    let router = Router::new().raw("record", claimed).state(says);
    let server = stage.serve_with(stage.server(), router).await;
    let id = stage.client().await.enqueue(task()).await.unwrap().id;
    assert_eq!(claims.next().await, id);
    assert_eq!(stage.state(&id).await, "active");
    assert_eq!(stage.record(&id).await, fields(&[]));
    stage.audit().await;
    server.handle.stop();
}

#[tokio::test]
async fn what_happened_is_written_when_the_task_leaves_active() {
    let stage = Stage::new("happened").await;
    let router = Router::new().raw("record", |_: RawTask, context: TaskContext| async move {
        match context.retried() {
            0 => Err::<(), _>(TaskError::retry_after("first", Duration::ZERO)),
            _ => Err(TaskError::skip_retry("second")),
        }
    });
    let before = stage.now().await;
    let server = stage.serve_with(stage.server(), router).await;
    let id = stage.client().await.enqueue(task()).await.unwrap().id;
    let record = stage.wait_for_state(&id, "archived").await;
    let times = before..=stage.now().await;
    let time = |field: &str| record[field].parse::<u64>().unwrap();
    assert!(times.contains(&time("started_at")), "{record:?}");
    assert!(time("started_at") <= time("last_failed_at"), "{record:?}");
    assert!(times.contains(&time("last_failed_at")), "{record:?}");
    let mut expected = fields(&[
        ("retried", "1"),
        ("last_error", "second"),
        ("reason", "skipped"),
    ]);
    for field in ["started_at", "last_failed_at"] {
        expected.insert(field.into(), record[field].clone());
    }
    assert_eq!(record, expected);
    stage.audit().await;
    server.stop().await;
}
