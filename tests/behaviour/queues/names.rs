//! The set of queue names, which also comes back after it was lost.

use std::collections::BTreeSet;
use std::time::Duration;

use redis::AsyncCommands;
use windlass::task::RawTask;
use windlass::{Router, defaults};

use crate::support::{LIMIT, RedisServer, Stage, eventually};

async fn names(stage: &Stage) -> BTreeSet<String> {
    let key = format!("{}:queues", stage.prefix);
    stage.redis().smembers(key).await.unwrap()
}

fn set(names: &[&str]) -> BTreeSet<String> {
    names.iter().map(|name| name.to_string()).collect()
}

fn task() -> RawTask {
    RawTask::new("named", "x")
}

#[tokio::test]
async fn a_queue_is_listed_before_its_first_task() {
    let stage = Stage::new("names").await;
    let client = stage.client().await;
    client.enqueue(task()).await.unwrap();
    client.enqueue(task()).queue("mail").await.unwrap();
    let many = [RawTask::new("{}", "bad")];
    assert!(client.enqueue_many(many).await[0].is_err());
    assert_eq!(names(&stage).await, set(&["default", "mail"]));
}

#[tokio::test]
async fn a_server_lists_its_queues_again() {
    let redis = RedisServer::start(&[]);
    let stage = Stage::on(&redis, "heartbeat").await;
    let router = Router::new().raw("named", |_: RawTask| async { Ok::<_, String>(()) });
    let settings = stage.server().queues([("a", 1), ("b", 1)]);
    let server = stage.serve_with(settings, router).await;
    for _ in 0..2 {
        eventually("the queues are listed", LIMIT, async || {
            let names = names(&stage).await;
            if names == set(&["a", "b"]) {
                Ok(())
            } else {
                Err(names)
            }
        })
        .await;
        let _: () = redis::cmd("FLUSHALL")
            .query_async(&mut stage.redis())
            .await
            .unwrap();
    }
    server.stop().await;
}

#[tokio::test]
async fn a_client_lists_its_queues_again() {
    let redis = RedisServer::start(&[]);
    let stage = Stage::on(&redis, "client").await;
    let client = stage.client().await;
    client.enqueue(task()).await.unwrap();
    let _: () = redis::cmd("FLUSHALL")
        .query_async(&mut stage.redis())
        .await
        .unwrap();
    let limit = defaults::HEARTBEAT + Duration::from_secs(5);
    eventually("the queue is listed", limit, async || {
        client.enqueue(task()).await.unwrap();
        let names = names(&stage).await;
        if names == set(&["default"]) {
            Ok(())
        } else {
            Err(names)
        }
    })
    .await;
}
