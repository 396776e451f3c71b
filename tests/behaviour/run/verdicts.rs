//! A handler's word on what becomes of its task.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use anyhow::Context;
use windlass::handler::TaskResultExt;
use windlass::task::RawTask;
use windlass::{Router, State, TaskContext, TaskError};

use crate::support::Stage;

type Runs = Arc<AtomicU32>;

async fn handle(
    task: RawTask,
    context: TaskContext,
    State(runs): State<Runs>,
) -> Result<(), anyhow::Error> {
    let run = runs.fetch_add(1, Ordering::Relaxed);
    let failed = || Err::<(), _>(std::io::Error::other("it failed"));
    match &*task.payload {
        b"skip" => failed().or_skip_retry().context("outer")?,
        b"revoke" => failed().or_revoke().context("outer")?,
        b"snooze" => Err(TaskError::snooze(Duration::from_secs(600))).context("outer")?,
        b"nap" if run < 5 => Err(TaskError::snooze(Duration::from_millis(1)))?,
        b"nap" if context.attempt() > 1 => Err(TaskError::skip_retry("a snooze was counted"))?,
        _ => {}
    }
    Ok(())
}

async fn run(stage: &Stage, payload: &str, state: &str) -> (String, windlass::server::Report) {
    let router = Router::new().raw("kind", handle).state(Runs::default());
    let server = stage.serve_with(stage.server(), router).await;
    let task = RawTask::new("kind", payload);
    let id = stage.client().await.enqueue(task).await.unwrap().id;
    stage.wait_for_state(&id, state).await;
    stage.audit().await;
    (id, server.stop().await)
}

#[tokio::test]
async fn a_task_that_is_not_to_be_retried_is_archived() {
    let stage = Stage::new("skip").await;
    let (id, report) = run(&stage, "skip", "archived").await;
    let record = stage.record(&id).await;
    assert_eq!(record["reason"], "skipped");
    assert_eq!(record["last_error"], "outer: it failed");
    assert!(!record.contains_key("retried"), "{record:?}");
    assert_eq!(report.stats.archived, 1);
    assert_eq!(stage.total("archived_skipped").await, 1);
}

#[tokio::test]
async fn a_revoked_task_is_gone() {
    let stage = Stage::new("revoke").await;
    let (id, report) = run(&stage, "revoke", "gone").await;
    assert!(stage.record(&id).await.is_empty());
    assert_eq!((report.stats.completed, report.stats.archived), (1, 0));
    assert_eq!(stage.total("failed").await, 0);
}

#[tokio::test]
async fn a_snoozed_task_waits_without_spending_a_retry() {
    let stage = Stage::new("snooze").await;
    let before = stage.now().await;
    let (id, report) = run(&stage, "snooze", "scheduled").await;
    let due = stage.scores("scheduled").await[0].1 as u64;
    assert!((before + 600_000..=stage.now().await + 600_001).contains(&due));
    let record = stage.record(&id).await;
    let fields: Vec<_> = record.keys().map(String::as_str).collect();
    assert_eq!(fields, ["kind", "payload", "started_at"]);
    assert_eq!((report.stats.deferred, report.stats.retried), (1, 0));
    assert_eq!(stage.total("failed").await, 0);
}

#[tokio::test]
async fn however_often_it_snoozes_it_is_the_first_attempt() {
    let stage = Stage::new("nap").await;
    let (_, report) = run(&stage, "nap", "gone").await;
    let stats = report.stats;
    assert_eq!((stats.deferred, stats.completed, stats.archived), (5, 1, 0));
}
