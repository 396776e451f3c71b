//! An archive of 20,000 old tasks is swept in bounded steps.

use crate::support::{HOUR, RedisServer, Stage, Watch, puppet, write_tasks};

#[tokio::test]
async fn twenty_thousand_old_tasks_are_swept_in_bounded_steps() {
    let redis = RedisServer::start(&[]);
    let stage = Stage::on(&redis, "old").await;
    let long_ago = stage.now().await - HOUR.as_millis() as u64 * 24;
    write_tasks(&stage, 20_000, "archived", |n| long_ago + n).await;
    write_tasks(&stage, 20_000, "completed", |n| long_ago + n).await;
    let watch = Watch::start(&redis, &stage).await;
    let settings = stage.server().archive_limits(10_000, HOUR);
    let server = stage.serve_with(settings, puppet().0).await;
    stage.wait_for_total("swept_archived", 20_000).await;
    stage.wait_for_total("swept_completed", 20_000).await;
    let work = watch.end().await;
    println!("sweep of 20,000 archived and 20,000 completed tasks: {work:?}");
    // 200 of each at a time.
    assert_eq!(work.most_records, 400, "{work:?}");
    assert!((100..=110).contains(&work.calls), "{work:?}");
    server.stop().await;
    assert_eq!(stage.keys("t:").await, [""; 0]);
    stage.audit().await;
}
