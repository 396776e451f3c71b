//! What the observer of a server is told of failed tasks.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use windlass::Router;
use windlass::server::{Event, EventTask};
use windlass::task::RawTask;

use crate::support::Stage;

fn name(task: &EventTask) -> String {
    format!(
        "{} {} {} {}",
        task.id,
        task.kind,
        task.queue,
        task.attempt.unwrap_or(0)
    )
}

#[tokio::test]
async fn each_failure_is_told_once() {
    let stage = Stage::new("told").await;
    let told = Arc::new(Mutex::new(Vec::new()));
    let notes = told.clone();
    let settings = stage.server().retry_delay(|_| Duration::from_millis(2));
    let settings = settings.on_event(move |event| {
        let note = match event {
            Event::Retried {
                task, delay, error, ..
            } => {
                format!("retried {} {delay:?}: {error}", name(task))
            }
            Event::Archived {
                task,
                reason,
                error,
                ..
            } => {
                format!("archived {} {reason}: {error}", name(task))
            }
            other => format!("{other:?}"),
        };
        notes.lock().unwrap().push(note);
    });
    let router = Router::new()
        .raw("fails", |_: RawTask| async { Err::<(), _>("oh") })
        .raw("works", |_: RawTask| async { Ok::<_, String>(()) });
    let server = stage.serve_with(settings, router).await;
    let client = stage.client().await;
    client
        .enqueue(RawTask::new("works", "x"))
        .id("b")
        .await
        .unwrap();
    let enqueue = client.enqueue(RawTask::new("fails", "x")).id("a");
    enqueue.max_retry(2).await.unwrap();
    stage.wait_for_state("a", "archived").await;
    stage.wait_for_state("b", "gone").await;
    server.stop().await;
    let expected = [
        "retried a fails default 1 2ms: oh",
        "retried a fails default 2 2ms: oh",
        "archived a fails default 3 retries_exhausted: oh",
    ];
    assert_eq!(*told.lock().unwrap(), expected);
}
