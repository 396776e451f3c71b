//! How long a handler may run, as it is told itself.

use std::time::{Duration, Instant, SystemTime};

use windlass::handler::CancelReason;
use windlass::server::Event;
use windlass::task::RawTask;
use windlass::{NewTask, Router, TaskContext, defaults};

use crate::support::{Stage, ms, puppet, seen, task};

/// Longer than every default.
const DAY: Duration = Duration::from_secs(24 * 3600);

#[tokio::test]
async fn the_earlier_of_timeout_and_deadline_is_the_limit() {
    let stage = Stage::new("limits").await;
    let client = stage.client().await;
    let (says, mut limits) = seen();
    let router = Router::new().raw("kind", move |_: RawTask, context: TaskContext| {
        let left = context.deadline();
        let left = left.map(|at| at.saturating_duration_since(Instant::now()));
        let said = says.send(left);
        async move { said.map_err(|error| error.to_string()) }
    });
    let server = stage.serve_with(stage.server(), router).await;
    let minutes = |n: u64| Duration::from_secs(60 * n);
    let task = || NewTask::from(RawTask::new("kind", "x"));
    let by = |span: Duration| SystemTime::now() + span;
    let cases = [
        ("neither", task(), Some(defaults::TASK_TIMEOUT)),
        ("timeout", task().timeout(minutes(50)), Some(minutes(50))),
        (
            "deadline",
            task().deadline(by(minutes(10))),
            Some(minutes(10)),
        ),
        (
            "late deadline",
            task().deadline(by(DAY)),
            Some(defaults::TASK_TIMEOUT),
        ),
        (
            "earlier deadline",
            task().timeout(minutes(50)).deadline(by(minutes(10))),
            Some(minutes(10)),
        ),
        (
            "earlier timeout",
            task().timeout(minutes(5)).deadline(by(minutes(10))),
            Some(minutes(5)),
        ),
        ("none", task().no_timeout(), None),
        (
            "only the deadline",
            task().no_timeout().deadline(by(DAY)),
            Some(DAY),
        ),
    ];
    for (name, task, expected) in cases {
        client.enqueue(task).await.unwrap();
        let left = limits.next().await;
        assert_eq!(left.is_some(), expected.is_some(), "{name}: {left:?}");
        if let (Some(left), Some(expected)) = (left, expected) {
            let earliest = expected - Duration::from_secs(30);
            let latest = expected + Duration::from_secs(1);
            assert!((earliest..=latest).contains(&left), "{name}: {left:?}");
        }
    }
    server.stop().await;
}

#[tokio::test]
async fn work_that_is_done_over_its_limit_is_done_and_told() {
    let stage = Stage::new("over").await;
    let client = stage.client().await;
    let (tells, mut told) = seen();
    let settings = stage.server().on_event(move |event| {
        if let Event::OverLimit { task, .. } = event {
            let _ = tells.send(task.id.clone());
        }
    });
    let (router, mut calls) = puppet();
    let server = stage.serve_with(settings, router).await;
    for id in ["done", "failed"] {
        let enqueue = client.enqueue(task("x")).id(id).max_retry(0);
        enqueue.timeout(ms(100)).await.unwrap();
        let call = calls.next().await;
        assert_eq!(call.cancelled().await, CancelReason::Timeout);
        match id {
            "done" => call.complete(),
            _ => call.fail("cut short"),
        }
    }
    stage.wait_for_state("done", "gone").await;
    assert_eq!(told.next().await, "done");
    let record = stage.wait_for_state("failed", "archived").await;
    assert_eq!(record["last_error"], "timed out after 100ms: cut short");
    let stats = server.stop().await.stats;
    let counts = (stats.completed, stats.archived, stats.over_limit);
    assert_eq!(counts, (1, 1, 1));
    assert_eq!(told.so_far(), [""; 0]);
}
