//! What a server costs while it has nothing to do.

use std::time::Duration;

use futures::StreamExt;
use redis::AsyncCommands;
use tokio::time::{Instant, timeout_at};
use windlass::{RawTask, Router, Server};

use crate::support::{LIMIT, RedisServer, Stage, eventually, within};

const WATCHED: Duration = Duration::from_secs(8);

/// The commands that clients send within the watched time, without those that scripts run.
async fn commands(redis: &RedisServer) -> Vec<String> {
    let client = redis::Client::open(redis.url()).unwrap();
    let monitor = client.get_async_monitor().await.unwrap();
    let lines = monitor.into_on_message::<String>();
    // `1700000000.000000 [0 127.0.0.1:50000] "BLPOP" …`; the second is `[0 lua]` in a script.
    let commands = lines.filter_map(async |line| {
        let command = line.split('"').nth(1).unwrap_or_default().to_owned();
        (!line.contains(" lua] ")).then_some(command)
    });
    let mut commands = std::pin::pin!(commands);
    // What it takes to start is not counted: scripts are loaded, and connections made.
    let mut waits = 0;
    while waits < 3 {
        let command = within("it waits for work", LIMIT, commands.next()).await;
        waits += usize::from(command.unwrap() == "BLPOP");
    }
    let end = Instant::now() + WATCHED;
    let mut seen = Vec::new();
    while let Ok(Some(command)) = timeout_at(end, commands.next()).await {
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

async fn nothing(_: RawTask) -> Result<(), String> {
    Ok(())
}

#[tokio::test]
async fn an_idle_server_sends_few_commands() {
    let redis = RedisServer::start(&[]);
    let stage = Stage::on(&redis, "idle").await;
    let settings = Server::builder().redis(stage.config());
    let server = stage
        .serve_with(settings, Router::new().raw("kind", nothing))
        .await;
    stage
        .client()
        .await
        .enqueue(RawTask::new("kind", "x"))
        .await
        .unwrap();
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
    let _: () = stage
        .redis()
        .hset(stage.key("meta"), "paused", 1)
        .await
        .unwrap();
    let settings = Server::builder().redis(stage.config());
    let server = stage
        .serve_with(settings, Router::new().raw("kind", nothing))
        .await;
    let many = (0..10).map(|_| RawTask::new("kind", "x"));
    assert!(
        stage
            .client()
            .await
            .enqueue_many(many)
            .await
            .iter()
            .all(Result::is_ok)
    );
    assert_frugal(&redis).await;
    assert_eq!(stage.count("pending").await, 10);
    server.stop().await;
}
