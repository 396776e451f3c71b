//! Redis restarts at random moments, again and again.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use windlass::task::RawTask;
use windlass::{NewTask, Router, TaskContext};

use crate::fixture::{LIMIT, Stage};
use crate::seen::seen;
use crate::support::{RedisServer, eventually};

const TASKS: usize = 400;

#[tokio::test]
async fn the_backlog_drains_after_every_restart() {
    let redis = Arc::new(RedisServer::start(&[
        ("appendonly", "yes"),
        ("appendfsync", "always"),
    ]));
    let mut stage = Stage::on(&redis, "restarts").await;
    let (says, mut runs) = seen();
    let router = Router::new().raw("kind", move |_: RawTask, context: TaskContext| {
        let said = says.send(context.id().to_owned());
        async move {
            // Its work.
            tokio::time::sleep(Duration::from_millis(5)).await;
            said.map_err(|error| error.to_string())
        }
    });
    let settings = stage.server().lease(Duration::from_secs(1)).concurrency(4);
    let settings = settings.clock_skew(Duration::from_millis(100));
    let server = stage
        .serve_with(settings.scan_interval(Duration::from_millis(200)), router)
        .await;
    let client = stage.client().await;
    let mut ran: HashMap<String, usize> = HashMap::new();
    for round in 0..5 {
        let tasks =
            (0..TASKS).map(|i| NewTask::from(RawTask::new("kind", "x")).id(format!("{round} {i}")));
        for result in client.enqueue_many(tasks).await {
            assert!(result.unwrap().is_new());
        }
        let before = server.handle.stats().completed;
        eventually("it is at work", LIMIT, async || {
            (server.handle.stats().completed > before).then_some(())
        })
        .await;
        // Not a wait for anything: the moment is meant to be random.
        let moment = Duration::from_millis(rand::random_range(0..200));
        tokio::time::sleep(moment).await;
        let restarted = redis.clone();
        tokio::task::spawn_blocking(move || restarted.restart())
            .await
            .unwrap();
        stage.reconnect(&redis).await;
        let left = stage.count("pending").await;
        stage.wait_until_drained("default", LIMIT).await;
        println!("restarted after {moment:?} with {left} tasks left");
        for id in runs.so_far() {
            *ran.entry(id).or_default() += 1;
        }
        stage.audit().await;
    }
    let twice = ran.values().filter(|&&times| times > 1).count();
    println!("{} tasks ran, {twice} of them more than once", ran.len());
    assert_eq!(ran.len(), 5 * TASKS);
    assert_eq!(stage.count("archived").await, 0);
    server.stop().await;
}
