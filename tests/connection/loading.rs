//! Redis is up but still loads its data.

use std::sync::Arc;
use std::time::Duration;

use windlass::client::EnqueueError;
use windlass::error::{BrokerError, ConnectProblem};
use windlass::task::RawTask;
use windlass::{NewTask, Router};

use crate::fixture::{LIMIT, Stage};
use crate::seen::seen;
use crate::support::{RedisServer, within};

/// So many keys, each of which takes 2 ms to load.
const KEYS: usize = 1_000;

/// Whether an enqueue failed because Redis was loading.
fn is_loading(error: &EnqueueError) -> bool {
    let EnqueueError::Refused(source) = error else {
        return false;
    };
    match source {
        BrokerError::Unavailable { code, .. } => code == "LOADING",
        BrokerError::Connect { problem, .. } => *problem == ConnectProblem::NotReady,
        _ => false,
    }
}

#[tokio::test]
async fn all_slots_work_again_when_redis_has_loaded() {
    let redis = Arc::new(RedisServer::start(&[
        ("save", "3600 1"),
        ("key-load-delay", "2000"),
        ("loading-process-events-interval-bytes", "1024"),
    ]));
    let mut stage = Stage::on(&redis, "loading").await;
    let (says, mut starts) = seen();
    let (go_on, wait) = tokio::sync::watch::channel(false);
    let router = Router::new().raw("kind", move |_: RawTask| {
        let (says, mut wait) = (says.clone(), wait.clone());
        async move {
            says.send(())?;
            wait.wait_for(|go| *go).await?;
            Ok::<_, anyhow::Error>(())
        }
    });
    let client = stage.client().await;
    let tasks = (0..KEYS).map(|_| NewTask::from(RawTask::new("kind", "x")).queue("ballast"));
    assert!(client.enqueue_many(tasks).await.iter().all(Result::is_ok));
    let server = stage
        .serve_with(stage.server().concurrency(4), router)
        .await;
    for _ in 0..4 {
        client.enqueue(RawTask::new("kind", "x")).await.unwrap();
    }
    starts.take(4).await;
    let () = redis::cmd("SAVE")
        .query_async(&mut stage.redis())
        .await
        .unwrap();

    redis.kill();
    let loads = redis.clone();
    let loaded = tokio::task::spawn_blocking(move || loads.restart());
    // All slots are in use, and their tasks end while nobody can be told.
    go_on.send(true).unwrap();
    let mut loading = 0;
    while !loaded.is_finished() {
        let enqueue = client
            .enqueue(RawTask::new("kind", "x"))
            .queue("probe")
            .send();
        let enqueued = within("an enqueue is answered", LIMIT, enqueue).await;
        loading += usize::from(enqueued.is_err_and(|error| is_loading(&error)));
        // A pace: it is the restart that is waited for.
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    loaded.await.unwrap();
    println!("{loading} enqueues were told that Redis was loading");
    assert!(loading > 0, "Redis was never seen loading");

    stage.reconnect(&redis).await;
    stage.wait_until_drained("default", LIMIT).await;
    go_on.send(false).unwrap();
    let again = (0..4).map(|_| NewTask::from(RawTask::new("kind", "x")));
    assert!(client.enqueue_many(again).await.iter().all(Result::is_ok));
    starts.take(4).await;
    go_on.send(true).unwrap();
    stage.wait_until_drained("default", LIMIT).await;
    assert_eq!(server.stop().await.stats.completed, 8);
    assert_eq!(stage.count_of("ballast", "pending").await, KEYS);
}
