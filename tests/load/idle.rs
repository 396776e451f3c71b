//! A server that has nothing to do.

use std::time::Duration;

use windlass::{RawTask, Router, Server};

use crate::support::{Monitor, RedisServer, Stage};

#[tokio::test]
async fn an_idle_server_asks_redis_for_little() {
    let redis = RedisServer::start(&[]);
    let stage = Stage::on(&redis, "idle").await;
    let settings = Server::builder().redis(stage.config());
    let router = Router::new().raw("kind", async |_: RawTask| Ok::<_, String>(()));
    let server = stage.serve_with(settings, router).await;
    // What it asks for at its start is another matter.
    let started = stage.now().await + 2_000;
    stage.wait_until(started).await;
    let monitor = Monitor::start(&redis).await;
    let seconds = 12;
    let commands = monitor.commands_for(Duration::from_secs(seconds)).await;
    let total: usize = commands.values().sum();
    let a_second = total as f64 / seconds as f64;
    println!("an idle server sends {a_second:.1} commands a second: {commands:?}");
    assert!(a_second < 8.0, "{commands:?}");
    assert!(
        commands.contains_key("BLPOP"),
        "it waits for work: {commands:?}"
    );
    server.stop().await;
}
