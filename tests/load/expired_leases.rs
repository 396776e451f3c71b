//! 20,000 leases of servers that died.

use std::time::Duration;

use windlass::Router;
use windlass::task::RawTask;

use crate::support::{RedisServer, Running, Stage, Watch, eventually, write_tasks};

const TASKS: u64 = 20_000;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn twenty_thousand_expired_leases_are_taken_back_in_bounded_steps() {
    let redis = RedisServer::start(&[]);
    let stage = Stage::on(&redis, "expired").await;
    write_tasks(&stage, TASKS, "active", |n| n + 1).await;
    let watch = Watch::start(&redis, &stage).await;
    let router = Router::new().raw("other", async |_: RawTask| Ok::<_, String>(()));
    // It claims nothing, so that only what takes them back touches them.
    let server = Running::start_quiet(stage.server(), router).await;
    eventually("all are taken back", Duration::from_secs(120), async || {
        let recovered = stage.total("recovered").await;
        if recovered == TASKS {
            Ok(())
        } else {
            Err(recovered)
        }
    })
    .await;
    let work = watch.end().await;
    println!("20,000 expired leases: {work:?}");
    // They are looked at and retried, 100 at a time.
    let steps = 2 * TASKS as usize / 100;
    assert_eq!(work.most_records, 100, "{work:?}");
    assert!((steps..=steps + 10).contains(&work.calls), "{work:?}");
    let report = server.stop().await;
    assert_eq!(report.stats.recovered, TASKS);
    for (counter, count) in [("retried", TASKS), ("failed", TASKS), ("archived", 0)] {
        assert_eq!(stage.total(counter).await, count, "{counter}");
    }
    stage.audit().await;
    assert_eq!(stage.keys("t:").await.len(), TASKS as usize);
}
