//! An archive of 20,000 old tasks is swept in bounded steps.

use crate::support::{HOUR, RedisServer, Stage, Watch, puppet, write_tasks};

#[tokio::test]
async fn twenty_thousand_old_tasks_are_swept_in_bounded_steps() {
    let redis = RedisServer::start(&[]);
    let stage = Stage::on(&redis, "old").await;
    let long_ago = stage.now().await - HOUR.as_millis() as u64 * 24;
    write_tasks(&stage, 20_000, "archived", |n| long_ago + n).await;
    write_tasks(&stage, 20_000, "completed", |n| long_ago + n).await;
    let mut watch = Watch::start(&stage).await;
    let settings = stage.server().archive_limits(10_000, HOUR);
    let server = stage.serve_with(settings, puppet().0).await;
    stage.wait_for_total("swept_archived", 20_000).await;
    stage.wait_for_total("swept_completed", 20_000).await;
    // At most 200 of each at a time.
    let calls = watch.script_calls().await;
    assert!(calls >= 100, "{calls}");
    watch
        .print("sweep of 20,000 archived and 20,000 completed tasks")
        .await;
    server.stop().await;
    assert_eq!(stage.keys("t:").await, [""; 0]);
    stage.audit().await;
}
