//! 20,000 tasks that are due at one instant.

use std::collections::HashSet;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use windlass::task::RawTask;
use windlass::{Router, Server, TaskContext};

use crate::support::{RedisServer, Stage, Watch, eventually, write_tasks};

const TASKS: usize = 20_000;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn twenty_thousand_due_at_one_instant_run_in_bounded_steps() {
    let redis = RedisServer::start(&[]);
    let stage = Stage::on(&redis, "due").await;
    for state in ["scheduled", "retry"] {
        write_tasks(&stage, TASKS as u64 / 2, state, |_| 1).await;
    }
    let due = stage.now().await + 3_000;
    for state in ["scheduled", "retry"] {
        // Multiplies every score by the due time.
        let mut rescore = redis::cmd("ZUNIONSTORE");
        rescore.arg(stage.key(state)).arg(1).arg(stage.key(state));
        rescore.arg("WEIGHTS").arg(due);
        let _: u64 = rescore.query_async(&mut stage.redis()).await.unwrap();
    }

    let ran = Arc::new(Mutex::new(HashSet::new()));
    let runs = ran.clone();
    let handler = move |_: RawTask, context: TaskContext| {
        let new = runs.lock().unwrap().insert(context.id().to_owned());
        async move { if new { Ok(()) } else { Err("once more") } }
    };
    let settings = Server::builder().redis(stage.config());
    let settings = settings.concurrency(200);
    let watch = Watch::start(&redis, &stage).await;
    let server = stage
        .serve_with(settings, Router::new().raw("kind", handler))
        .await;
    stage.wait_until(due - 200).await;
    let early = ran.lock().unwrap().len();
    assert!(early == 0 || stage.now().await >= due, "{early} are early");
    eventually("all have run", Duration::from_secs(120), async || {
        let ran = ran.lock().unwrap().len();
        if ran == TASKS { Ok(()) } else { Err(ran) }
    })
    .await;
    let report = server.stop().await;
    assert_eq!(
        (report.stats.completed, report.stats.retried),
        (TASKS as u64, 0)
    );
    let work = watch.end().await;
    println!("20,000 due at one instant: {work:?}");
    // They are moved, claimed and settled: at most 200 at a time, and many more than one.
    assert!(work.most_records <= 200, "{work:?}");
    assert!(work.calls <= 3 * TASKS / 30, "{work:?}");
    stage.audit().await;
    assert_eq!(stage.keys("t:").await, [""; 0]);
}
