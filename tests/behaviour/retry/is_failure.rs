//! An error that is no failure is tried again at no cost.

use std::io::{Error, ErrorKind};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use windlass::task::RawTask;
use windlass::{Router, TaskContext};

use crate::support::{Stage, seen};

#[tokio::test]
async fn an_error_that_is_no_failure_spends_no_retry() {
    let stage = Stage::new("no-failure").await;
    let (says, mut attempts) = seen();
    let runs = Arc::new(AtomicU32::new(0));
    let handler = move |_: RawTask, context: TaskContext| {
        let (says, runs) = (says.clone(), runs.clone());
        async move {
            let _ = says.send(context.attempt());
            match runs.fetch_add(1, Ordering::Relaxed) {
                0..5 => Err::<(), _>(Error::from(ErrorKind::WouldBlock)),
                _ => Err(Error::other("broken")),
            }
        }
    };
    let settings = stage.server().retry_delay(|_| Duration::from_millis(1));
    let settings = settings.is_failure(|error| {
        let error = error.downcast_ref::<Error>();
        error.is_none_or(|error| error.kind() != ErrorKind::WouldBlock)
    });
    let server = stage
        .serve_with(settings, Router::new().raw("busy", handler))
        .await;
    let enqueue = stage.client().await.enqueue(RawTask::new("busy", "x"));
    let id = enqueue.max_retry(0).await.unwrap().id;
    let record = stage.wait_for_state(&id, "archived").await;
    assert_eq!(record["reason"], "retries_exhausted");
    assert_eq!(record["last_error"], "broken");
    assert_eq!(attempts.so_far(), [1; 6]);
    assert_eq!(stage.total("failed").await, 1);
    stage.audit().await;
    server.stop().await;
}
