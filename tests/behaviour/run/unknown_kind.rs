//! A kind that a server lacks.

use redis::AsyncCommands;
use windlass::server::UnknownKind;
use windlass::task::RawTask;
use windlass::{Router, TaskContext};

use crate::support::{LIMIT, Stage, eventually, seen};

async fn nothing(_: RawTask) -> Result<(), String> {
    Ok(())
}

#[tokio::test]
async fn a_task_of_an_unknown_kind_is_put_off_and_keeps_all_it_has() {
    let stage = Stage::new("put-off").await;
    let server = stage
        .serve_with(stage.server(), Router::new().raw("known", nothing))
        .await;
    let task = RawTask::new("unknown", "x");
    let before = stage.now().await;
    let id = stage.client().await.enqueue(task).await.unwrap().id;
    let record = stage.wait_for_state(&id, "scheduled").await;
    let fields: Vec<_> = record.keys().map(String::as_str).collect();
    assert_eq!(fields, ["kind", "payload"], "nothing has been tried");
    let due = stage.scores("scheduled").await[0].1 as u64;
    // Ten seconds, plus or minus a half.
    assert!((before + 5_000..=stage.now().await + 15_001).contains(&due));
    stage.audit().await;
    let report = server.stop().await;
    assert_eq!((report.stats.deferred, report.stats.retried), (1, 0));
}

#[tokio::test]
async fn it_runs_where_it_is_known() {
    let stage = Stage::new("elsewhere").await;
    let (says, mut attempts) = seen();
    let handler = move |_: RawTask, context: TaskContext| {
        let said = says.send(context.attempt());
        async move { said.map_err(|error| error.to_string()) }
    };
    let here = stage
        .serve_with(stage.server(), Router::new().raw("here", nothing))
        .await;
    let client = stage.client().await;
    let enqueue = client.enqueue(RawTask::new("there", "x")).id("task");
    // Not one try more than the first may be spent on the way.
    enqueue.max_retry(0).await.unwrap();
    stage.wait_for_state("task", "scheduled").await;
    let there = stage
        .serve_with(stage.server(), Router::new().raw("there", handler))
        .await;
    eventually("it has run", LIMIT, async || {
        // Whichever server took it: let the time it was put off for be over.
        let scheduled = stage.key("scheduled");
        let mut over = redis::cmd("ZADD");
        over.arg(scheduled).arg("XX").arg(0).arg("task");
        let _: i64 = over.query_async(&mut stage.redis()).await.unwrap();
        let state = stage.state("task").await;
        if state == "gone" { Ok(()) } else { Err(state) }
    })
    .await;
    assert_eq!(attempts.so_far(), [1]);
    assert!(here.stop().await.stats.deferred > 0);
    assert_eq!(there.stop().await.stats.completed, 1);
    let dead: usize = stage.redis().zcard(stage.key("archived")).await.unwrap();
    assert_eq!(dead, 0);
}

#[tokio::test]
async fn it_is_archived_where_that_is_the_policy() {
    let stage = Stage::new("policy").await;
    let settings = stage.server().unknown_kind(UnknownKind::Archive);
    let server = stage
        .serve_with(settings, Router::new().raw("known", nothing))
        .await;
    let task = RawTask::new("unknown", "x");
    let id = stage.client().await.enqueue(task).await.unwrap().id;
    let record = stage.wait_for_state(&id, "archived").await;
    assert_eq!(record["reason"], "unknown_kind");
    assert!(record["last_error"].contains("\"unknown\""), "{record:?}");
    assert_eq!(server.stop().await.stats.archived, 1);
}

#[tokio::test]
async fn a_fallback_knows_every_kind() {
    let stage = Stage::new("fallback").await;
    let (says, mut kinds) = seen();
    let fallback = move |task: RawTask| {
        let said = says.send(task.kind);
        async move { said.map_err(|error| error.to_string()) }
    };
    let router = Router::new().raw("known", nothing).fallback(fallback);
    let server = stage.serve_with(stage.server(), router).await;
    let client = stage.client().await;
    client.enqueue(RawTask::new("unknown", "x")).await.unwrap();
    assert_eq!(kinds.next().await, "unknown");
    server.stop().await;
}
