//! What a server does for its leases and its own record while handlers run.

use std::collections::HashMap;
use std::time::Duration;

use redis::AsyncCommands;
use windlass::Router;
use windlass::server::HealthProblem;
use windlass::task::RawTask;

use crate::support::{LIMIT, RedisServer, Seen, Stage, eventually, seen, task};

/// A router whose handlers say that they have started and never end.
fn holds() -> (Router, Seen<()>) {
    let (says, started) = seen();
    let router = Router::new().raw("kind", move |_: RawTask| {
        let _ = says.send(());
        std::future::pending::<Result<(), String>>()
    });
    (router, started)
}

#[tokio::test]
async fn a_lease_lasts_as_long_as_set_and_is_extended() {
    let stage = Stage::new("extended").await;
    let (router, mut started) = holds();
    let lease = 60_000;
    let settings = stage.server().lease(Duration::from_millis(lease));
    let before = stage.now().await;
    let server = stage.serve_with(settings, router).await;
    stage.enqueue(task("x").id("a")).await;
    started.next().await;
    let first = stage.scores("active").await[0].1 as u64;
    assert!((before + lease..=stage.now().await + lease).contains(&first));
    eventually("the lease is extended", LIMIT, async || {
        let now = stage.scores("active").await[0].1 as u64;
        if now > first { Ok(()) } else { Err(now) }
    })
    .await;
    assert_eq!(stage.ids("active").await, ["a"]);
    server.handle.stop();
}

#[tokio::test]
async fn a_server_whose_redis_is_away_says_that_it_is_not_well() {
    let redis = RedisServer::start(&[]);
    let stage = Stage::on(&redis, "unwell").await;
    let (router, _started) = holds();
    let server = stage.serve_with(stage.server(), router).await;
    let healthy = async || server.handle.health().is_healthy().then_some(());
    eventually("it is well", LIMIT, healthy).await;
    redis.pause();
    eventually("it is not well", LIMIT, async || {
        let problems = server.handle.health().problems;
        let silent = |problem: &HealthProblem| matches!(problem, HealthProblem::NoHeartbeat(_));
        if problems.iter().any(silent) {
            Ok(())
        } else {
            Err(problems)
        }
    })
    .await;
    redis.resume();
    eventually("it is well again", LIMIT, healthy).await;
    server.stop().await;
}

#[tokio::test]
async fn a_server_is_listed_with_what_it_runs_until_it_stops() {
    let stage = Stage::new("listed").await;
    let (router, mut started) = holds();
    let before = stage.now().await;
    let settings = stage.server().concurrency(3).shutdown_grace(Duration::ZERO);
    let settings = settings
        .cancel_grace(Duration::ZERO)
        .queues([("default", 2), ("b", 1)]);
    let server = stage.serve_with(settings, router).await;
    let id = server.handle.id().to_owned();
    stage.enqueue(task("x").id("a")).await;
    started.next().await;
    let key = format!("{}:server:{id}", stage.prefix);
    let record = async || {
        let record = stage.redis().hgetall(&key).await;
        let record: HashMap<String, String> = record.unwrap();
        record
    };
    eventually("its record shows the task", LIMIT, async || {
        let record = record().await;
        let runs = record.get("running").is_some_and(|running| running == "1");
        if runs { Ok(()) } else { Err(record) }
    })
    .await;
    let record = record().await;
    for (field, value) in [
        ("phase", "running"),
        ("concurrency", "3"),
        ("queues", "default=2 b=1"),
        ("pid", &std::process::id().to_string()),
        ("version", env!("CARGO_PKG_VERSION")),
    ] {
        assert_eq!(record[field], value, "{field}");
    }
    assert!(record["tasks"].starts_with("default a kind "), "{record:?}");
    assert!(!record["host"].is_empty());
    let started_at: u64 = record["started_at"].parse().unwrap();
    assert!((before..=stage.now().await).contains(&started_at));
    let index = format!("{}:servers", stage.prefix);
    let listed: Vec<String> = stage.redis().zrange(&index, 0, -1).await.unwrap();
    assert_eq!(listed, [id]);
    // It goes even if the server dies and none comes after it: after 3 heartbeats of 200 ms, and 2 s.
    let lives: i64 = stage.redis().pttl(&index).await.unwrap();
    assert!((1..=2600).contains(&lives), "{lives} ms");
    server.stop().await;
    let left: bool = stage.redis().exists(&key).await.unwrap();
    let listed: usize = stage.redis().zcard(&index).await.unwrap();
    assert_eq!((left, listed), (false, 0));
}
