//! Counters: those of a day leave after 90 days, and those that cannot grow any more stop no task.

use std::time::Duration;

use redis::AsyncCommands;
use windlass::{RawTask, Router, TaskError};

use crate::support::Stage;

#[tokio::test]
async fn a_day_is_kept_for_90_days_and_a_counter_at_its_end_stops_no_task() {
    let stage = Stage::new("full").await;
    let client = stage.client().await;
    // Makes the counters of this day.
    let first = client.enqueue(RawTask::new("kind", "x")).id("first");
    first.delay(Duration::from_secs(600)).await.unwrap();
    let mut redis = stage.redis();
    let pattern = format!("{}:*:stats*", stage.prefix);
    let keys: Vec<String> = redis.keys(pattern).await.unwrap();
    assert_eq!(keys.len(), 2, "totals and a day: {keys:?}");
    for key in &keys {
        let ttl: i64 = redis.ttl(key).await.unwrap();
        let kept = if key.ends_with(":stats") {
            -1
        } else {
            90 * 86_400
        };
        assert!((kept - 60..=kept).contains(&ttl), "{key}: {ttl} s");
    }
    let names = [
        "enqueued",
        "processed",
        "failed",
        "retried",
        "completed",
        "archived",
    ];
    for key in &keys {
        for name in names {
            let _: () = redis.hset(key, name, i64::MAX).await.unwrap();
        }
    }
    let router = Router::new().raw("kind", |task: RawTask| async move {
        match &*task.payload {
            b"fails" => Err(TaskError::retry_after("once", Duration::from_secs(600))),
            b"dies" => Err(TaskError::skip_retry("never")),
            _ => Ok(()),
        }
    });
    let server = stage.serve_with(stage.server(), router).await;
    for (payload, state) in [("works", "gone"), ("fails", "retry"), ("dies", "archived")] {
        let enqueued = client.enqueue(RawTask::new("kind", payload)).id(payload);
        assert!(enqueued.await.unwrap().is_new());
        stage.wait_for_state(payload, state).await;
    }
    for key in &keys {
        for name in ["enqueued", "processed", "failed"] {
            let count: i64 = redis.hget(key, name).await.unwrap();
            assert_eq!(count, i64::MAX, "{key} {name}");
        }
    }
    stage.audit().await;
    server.stop().await;
}
