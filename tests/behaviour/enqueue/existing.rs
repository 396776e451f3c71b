//! An id that exists: the second task is not enqueued, and the first stays as it was.

use std::collections::BTreeMap;
use std::time::Duration;

use windlass::client::EnqueueOutcome;
use windlass::task::RawTask;
use windlass::{Router, TaskContext, TaskError};

use crate::support::{LIMIT, Stage, seen, within};

/// All that the queue has in Redis but its counters and what a running server writes on its own.
async fn everything(stage: &Stage) -> BTreeMap<String, Vec<u8>> {
    let mut dumps = stage.dumps(&format!("{}:*", stage.prefix)).await;
    let own = ["stats", "meta", "wake", ":server"];
    dumps.retain(|key, _| !own.iter().any(|own| key.contains(own)));
    dumps
}

#[tokio::test]
async fn an_existing_task_is_left_as_it_is_in_every_state() {
    let stage = Stage::new("existing").await;
    let client = stage.client().await;
    let (says, mut active) = seen();
    let handler = move |task: RawTask, context: TaskContext| {
        let says = says.clone();
        async move {
            match &*task.payload {
                b"retry" => Err(TaskError::retry_after("later", Duration::from_secs(600))),
                b"archived" => Err(TaskError::skip_retry("never")),
                _ => {
                    let _ = says.send(context.id().to_owned());
                    std::future::pending::<Result<(), TaskError>>().await
                }
            }
        }
    };
    let settings = stage.server().heartbeat(Duration::from_secs(10));
    let server = stage
        .serve_with(settings, Router::new().raw("kind", handler))
        .await;
    for state in ["active", "retry", "archived"] {
        let first = client.enqueue(RawTask::new("kind", state)).id(state);
        assert!(first.await.unwrap().is_new());
        stage.wait_for_state(state, state).await;
    }
    active.next().await;
    let first = client
        .enqueue(RawTask::new("kind", "first"))
        .id("scheduled");
    first.delay(Duration::from_secs(600)).await.unwrap();
    client
        .enqueue(RawTask::new("kind", "x"))
        .id("pending")
        .queue("unserved")
        .await
        .unwrap();

    let before = everything(&stage).await;
    for id in ["active", "retry", "archived", "scheduled", "pending"] {
        let queue = if id == "pending" {
            "unserved"
        } else {
            "default"
        };
        for delay in [0, 60] {
            let second = client
                .enqueue(RawTask::new("other", "other"))
                .id(id)
                .queue(queue);
            let second = second
                .priority(9)
                .max_retry(1)
                .delay(Duration::from_secs(delay));
            let answer = within("the repeat is answered", LIMIT, second.send())
                .await
                .unwrap();
            assert_eq!((&*answer.id, answer.outcome), (id, EnqueueOutcome::Exists));
            assert_eq!(answer.require_new().unwrap_err().id, id);
        }
    }
    assert_eq!(everything(&stage).await, before);
    assert_eq!(stage.total("duplicates").await, 8);
    stage.audit().await;
    server.handle.stop();
}

#[tokio::test]
async fn an_id_is_free_again_when_its_task_is_done() {
    let stage = Stage::new("free").await;
    let client = stage.client().await;
    let router = Router::new().raw("kind", |_: RawTask| async { Ok::<_, String>(()) });
    let server = stage.serve_with(stage.server(), router).await;
    for _ in 0..3 {
        let enqueued = client.enqueue(RawTask::new("kind", "x")).id("again").await;
        assert!(enqueued.unwrap().is_new());
        stage.wait_for_state("again", "gone").await;
    }
    assert_eq!(server.stop().await.stats.completed, 3);
}
