//! Redis forgets its scripts, again and again.

use std::time::Duration;

use futures::future::join_all;
use tokio::time::Instant;
use windlass::task::RawTask;
use windlass::{NewTask, Router, TaskContext, TaskError};

use crate::fixture::{LIMIT, Stage};
use crate::support::Log;
use crate::support::RedisServer;

const LOAD: Duration = Duration::from_secs(3);
const FLUSHES: Duration = Duration::from_millis(50);

#[tokio::test]
async fn nobody_notices_that_scripts_are_forgotten() {
    let redis = RedisServer::start(&[("appendonly", "yes")]);
    let stage = Stage::on(&redis, "forgotten").await;
    let log = Log::default();
    // Covers what runs on this thread, which is all but the heartbeat.
    let _logging = tracing::subscriber::set_default(log.subscriber());
    let router = Router::new().raw("kind", |_: RawTask, context: TaskContext| async move {
        match context.retried() {
            0 => Err(TaskError::retry_after(
                "once more",
                Duration::from_millis(5),
            )),
            _ => Ok(()),
        }
    });
    let server = stage.serve_with(stage.server(), router).await;
    let client = stage.client().await;

    let mut connection = stage.redis();
    let flush = tokio::spawn(async move {
        let mut flushes = tokio::time::interval(FLUSHES);
        loop {
            flushes.tick().await;
            let mut flush = redis::cmd("SCRIPT");
            let () = flush
                .arg("FLUSH")
                .query_async(&mut connection)
                .await
                .unwrap();
        }
    });
    let end = Instant::now() + LOAD;
    let mut enqueued = 0;
    while Instant::now() < end {
        let singles = (0..20).map(|_| client.enqueue(RawTask::new("kind", "x")).send());
        for single in join_all(singles).await {
            assert!(single.unwrap().is_new());
        }
        let many = (0..20).map(|_| NewTask::from(RawTask::new("kind", "x")));
        for one in client.enqueue_many(many).await {
            assert!(one.unwrap().is_new());
        }
        enqueued += 40;
        // A pace, so that the calls spread over many forgettings.
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    stage.wait_until_drained("default", LIMIT).await;
    flush.abort();
    let stats = server.stop().await.stats;
    println!("{enqueued} tasks while the scripts were forgotten each {FLUSHES:?}");
    assert_eq!((stats.completed, stats.retried), (enqueued, enqueued));
    assert_eq!(
        (stats.settles_refused, stats.leases_lost, stats.recovered),
        (0, 0, 0)
    );
    assert_eq!(stage.count("archived").await, 0);
    assert_eq!(
        log.count(" WARN ") + log.count(" ERROR "),
        0,
        "{:#?}",
        log.lines()
    );
}
