//! The options of a type, and those of an enqueue, which win.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use windlass::client::EnqueueOutcome;
use windlass::task::RetryPolicy;
use windlass::{NewTask, Router, Task, TaskContext, Unique};

use crate::support::{HOUR, LIMIT, Stage, ms, within};

#[derive(Serialize, Deserialize)]
struct Report {
    year: u32,
}

impl Task for Report {
    const KIND: &'static str = "report";

    fn defaults(&self, task: NewTask) -> NewTask {
        task.queue("reports")
            .priority(3)
            .max_retry(5)
            .timeout(Duration::from_secs(60))
            .retry_policy(RetryPolicy::fixed(HOUR))
            .retention(HOUR)
            .unique(Unique::until_done())
            .delay(HOUR)
            .header("origin", "type")
            .header("kept", "type")
    }
}

#[tokio::test]
async fn every_task_of_a_type_has_its_defaults() {
    let stage = Stage::new("type").await;
    let client = stage.client().await;
    let single = client.enqueue(Report { year: 1 }).await.unwrap();
    let list = client.enqueue_many([Report { year: 2 }]).await;
    let listed = list.into_iter().next().unwrap().unwrap();
    let inspector = stage.inspector().await;
    for enqueued in [single, listed] {
        assert_eq!(enqueued.queue, "reports");
        let task = inspector.task("reports", &enqueued.id).await;
        let task = task.unwrap().unwrap();
        assert_eq!(task.state, windlass::task::TaskState::Scheduled);
        for (field, value) in [
            ("priority", "3"),
            ("max_retry", "5"),
            ("timeout", "60000"),
            ("retention", "3600000"),
            ("h:origin", "type"),
        ] {
            assert_eq!(task.fields[field], value, "{field}");
        }
        assert!(task.fields["policy"].starts_with("fixed 3600000"));
        assert!(task.fields["unique"].starts_with("done:"));
    }
    let again = client.enqueue(Report { year: 1 }).await.unwrap();
    assert_eq!(again.outcome, EnqueueOutcome::Duplicate);
}

#[tokio::test]
async fn what_is_set_at_the_enqueue_wins() {
    let stage = Stage::new("wins").await;
    let client = stage.client().await;
    let report = client.enqueue(Report { year: 1 }).queue("default");
    let report = report.priority(0).max_retry(25).no_timeout();
    let report = report.retention(Duration::ZERO).delay(Duration::ZERO);
    let report = report.retry_policy(RetryPolicy::fixed(ms(500)));
    let report = report.unique(Unique::until_started().key("key"));
    let enqueued = report.header("origin", "enqueue").await.unwrap();
    let task = stage.look(&enqueued.id).await.unwrap();
    assert_eq!(task.state, windlass::task::TaskState::Pending);
    for absent in ["priority", "max_retry", "retention"] {
        assert_eq!(task.fields.get(absent), None, "{absent}");
    }
    assert_eq!(task.fields["timeout"], "0");
    assert_eq!(task.fields["unique"], "started:report{key}");
    assert!(task.fields["policy"].starts_with("fixed 500 "));
    assert_eq!(task.fields["h:origin"], "enqueue");
    assert_eq!(task.fields["h:kept"], "type");
}

#[tokio::test]
async fn a_handler_sees_the_options_that_won() {
    let stage = Stage::new("seen").await;
    let client = stage.client().await;
    let (says, mut seen) = tokio::sync::mpsc::unbounded_channel();
    let handler = move |task: Report, context: TaskContext| {
        let header = context.header("origin").map(str::to_owned);
        let _ = says.send((task.year, context.max_retry(), header));
        async { Ok::<_, String>(()) }
    };
    let settings = stage.server().queues([("reports", 1)]);
    let server = stage
        .serve_with(settings, Router::new().task(handler))
        .await;
    let report = client.enqueue(Report { year: 9 }).delay(Duration::ZERO);
    report.max_retry(7).await.unwrap();
    let seen = within("it runs", LIMIT, seen.recv()).await;
    assert_eq!(seen, Some((9, 7, Some("type".to_owned()))));
    server.stop().await;
}
