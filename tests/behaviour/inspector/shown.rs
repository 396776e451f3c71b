//! What an operator sees of one task.

use std::time::{Duration, SystemTime};

use redis::AsyncCommands;
use windlass::defaults::{MAX_RETRY, TASK_TIMEOUT};

use crate::support::{Stage, ms, task};

#[tokio::test]
async fn when_a_task_became_pending_whatever_its_priority() {
    let stage = Stage::new("since").await;
    let client = stage.client().await;
    for priority in [0, 1, 9] {
        let before = stage.in_future(Duration::ZERO).await;
        let id = format!("p{priority}");
        let enqueue = client.enqueue(task("x")).id(&id).priority(priority);
        enqueue.await.unwrap();
        let after = stage.in_future(ms(1)).await;
        let shown = stage.look(&id).await.unwrap();
        assert!((before..=after).contains(&shown.at), "{shown:?}");
        assert_eq!(shown.priority, priority);
    }
}

#[tokio::test]
async fn the_limits_that_hold_also_where_they_are_the_defaults() {
    let stage = Stage::new("limits").await;
    let client = stage.client().await;
    client.enqueue(task("x")).id("plain").await.unwrap();
    let enqueue = client.enqueue(task("x")).id("own");
    enqueue.max_retry(3).timeout(ms(500)).await.unwrap();
    let enqueue = client.enqueue(task("x")).id("free");
    enqueue.no_timeout().await.unwrap();
    for (id, max_retry, timeout) in [
        ("plain", MAX_RETRY, Some(TASK_TIMEOUT)),
        ("own", 3, Some(ms(500))),
        ("free", MAX_RETRY, None),
    ] {
        let shown = stage.look(id).await.unwrap();
        assert_eq!((shown.max_retry, shown.timeout), (max_retry, timeout));
    }
}

#[tokio::test]
async fn a_score_that_is_no_time_is_the_nearest_one() {
    let stage = Stage::new("scores").await;
    stage.enqueue_for_later("it").await;
    let mut redis = stage.redis();
    for score in ["inf", "-inf", "1e308", "-1e308", "-1", "0.5"] {
        let _: () = redis
            .zadd(stage.key("scheduled"), "it", score)
            .await
            .unwrap();
        let shown = stage.look("it").await.expect(score);
        let is_future = shown.at > SystemTime::now();
        assert_eq!(is_future, ["inf", "1e308"].contains(&score), "{score}");
    }
}
