//! What a server costs while it has nothing to do.

use std::time::Duration;

use tokio::time::{Instant, timeout_at};
use windlass::task::RawTask;
use windlass::{Router, Server};

use crate::support::{LIMIT, Monitor, RedisServer, Stage, eventually, task, within};

const WATCHED: Duration = Duration::from_secs(8);

/// The commands that clients send within the watched time.
async fn commands(redis: &RedisServer) -> Vec<String> {
    let mut monitor = Monitor::start(redis).await;
    // What it takes to start is not counted: scripts are loaded, and connections made.
    let mut waits = 0;
    while waits < 3 {
        let command = within("it waits for work", LIMIT, monitor.next_sent()).await;
        waits += usize::from(command == "BLPOP");
    }
    let end = Instant::now() + WATCHED;
    let mut seen = Vec::new();
    while let Ok(command) = timeout_at(end, monitor.next_sent()).await {
        seen.push(command);
    }
    seen
}

async fn assert_frugal(redis: &RedisServer) {
    let commands = commands(redis).await;
    let rate = commands.len() as f64 / WATCHED.as_secs_f64();
    println!("{rate:.1} commands a second: {commands:?}");
    assert!(!commands.is_empty() && rate < 5.0, "{rate}: {commands:?}");
}

fn router() -> Router {
    Router::new().raw("kind", async |_: RawTask| Ok::<_, String>(()))
}

#[tokio::test]
async fn an_idle_server_sends_few_commands() {
    let redis = RedisServer::start(&[]);
    let stage = Stage::on(&redis, "idle").await;
    let settings = Server::builder().redis(stage.config());
    let server = stage.serve_with(settings, router()).await;
    stage.enqueue(task("x")).await;
    eventually("it is at work", LIMIT, async || {
        (server.handle.stats().completed == 1).then_some(())
    })
    .await;
    assert_frugal(&redis).await;
    server.stop().await;
}

#[tokio::test]
async fn a_server_of_a_paused_queue_sends_few_commands() {
    let redis = RedisServer::start(&[]);
    let stage = Stage::on(&redis, "paused-idle").await;
    stage.pause().await;
    let settings = Server::builder().redis(stage.config());
    let server = stage.serve_with(settings, router()).await;
    stage.enqueue_many((0..10).map(|_| task("x"))).await;
    assert_frugal(&redis).await;
    assert_eq!(stage.count("pending").await, 10);
    server.stop().await;
}
