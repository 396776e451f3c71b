//! How long a handler may run, as it is told itself.

use std::time::{Duration, Instant, SystemTime};

use windlass::{NewTask, RawTask, Router, TaskContext, defaults};

use crate::support::{Stage, seen};

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
