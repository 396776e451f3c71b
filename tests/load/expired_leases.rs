//! 20,000 leases of servers that died.

use std::time::Duration;

use windlass::{RawTask, Router};

use crate::support::{RedisServer, Stage, Watch, eventually, write_tasks};

const TASKS: u64 = 20_000;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn twenty_thousand_expired_leases_are_taken_back_in_bounded_steps() {
    let redis = RedisServer::start(&[]);
    let stage = Stage::on(&redis, "expired").await;
    write_tasks(&stage, TASKS, "active", |n| n + 1).await;
    let mut watch = Watch::start(&stage).await;
    let router = Router::new().raw("other", async |_: RawTask| Ok::<_, String>(()));
    let settings = stage.server().queues([("default", 1)]);
    let server = stage.serve_with(settings, router).await;
    // It knows no kind of theirs, so that what it takes back it only puts off.
    eventually("all are taken back", Duration::from_secs(120), async || {
        let recovered = stage.total("recovered").await;
        if recovered == TASKS {
            Ok(())
        } else {
            Err(recovered)
        }
    })
    .await;
    let calls = watch.script_calls().await;
    assert!(calls >= 2 * TASKS / 200, "{calls}");
    watch.print("20,000 expired leases").await;
    let report = server.stop().await;
    assert_eq!(report.stats.recovered, TASKS);
    for (counter, count) in [("retried", TASKS), ("failed", TASKS), ("archived", 0)] {
        assert_eq!(stage.total(counter).await, count, "{counter}");
    }
    stage.audit().await;
    assert_eq!(stage.keys("t:").await.len(), TASKS as usize);
}
