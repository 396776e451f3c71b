//! Redis takes no writes for a while, as in a failover, while handlers end.

use std::time::Duration;

use windlass::task::RawTask;
use windlass::{Router, TaskContext, TaskError};

use crate::fixture::{LIMIT, Stage};
use crate::seen::seen;
use crate::support::{RedisServer, eventually};

const WINDOW: Duration = Duration::from_secs(3);

async fn command(stage: &Stage, words: &[&str]) {
    let mut command = redis::cmd(words[0]);
    let () = command
        .arg(&words[1..])
        .query_async(&mut stage.redis())
        .await
        .unwrap();
}

/// Handlers end in each way while Redis takes no writes; then each is settled once.
async fn settles_afterwards(name: &str, begin: &[&str], end: &[&str]) {
    let redis = RedisServer::start(&[]);
    let stage = Stage::on(&redis, name).await;
    let (says, mut starts) = seen();
    let (go_on, wait) = tokio::sync::watch::channel(false);
    let router = Router::new().raw("kind", move |_: RawTask, context: TaskContext| {
        let (says, mut wait) = (says.clone(), wait.clone());
        async move {
            says.send(context.id().to_owned())
                .map_err(TaskError::skip_retry)?;
            wait.wait_for(|go| *go)
                .await
                .map_err(TaskError::skip_retry)?;
            let long = Duration::from_secs(600);
            match context.id() {
                "archived" => Err(TaskError::skip_retry("never")),
                "retry" => Err(TaskError::retry_after("later", long)),
                "scheduled" => Err(TaskError::snooze(long)),
                _ => Ok(()),
            }
        }
    });
    let server = stage.serve_with(stage.server(), router).await;
    let client = stage.client().await;
    let ids = ["gone", "archived", "retry", "scheduled"];
    for id in ids {
        client
            .enqueue(RawTask::new("kind", "x"))
            .id(id)
            .await
            .unwrap();
    }
    starts.take(ids.len()).await;
    let held = stage.scores("active").await;

    command(&stage, begin).await;
    go_on.send(true).unwrap();
    // The window itself: nothing can be waited for.
    tokio::time::sleep(WINDOW).await;
    let active = stage.scores("active").await;
    assert_eq!(active.len(), ids.len(), "nothing can be settled yet");
    command(&stage, end).await;

    for id in ids {
        eventually(&format!("{id} is settled"), LIMIT, async || {
            let state = stage.state(id).await;
            if state == id { Ok(()) } else { Err(state) }
        })
        .await;
    }
    assert_eq!(held.len(), ids.len());
    // The lease outlived the window, so nobody took them back.
    let totals = stage.totals().await;
    let total = |name: &str| totals.get(name).copied().unwrap_or(0);
    assert_eq!(
        (total("processed"), total("failed"), total("deferred")),
        (3, 2, 1),
        "{totals:?}"
    );
    assert_eq!((total("stale"), total("recovered")), (0, 0), "{totals:?}");
    stage.audit().await;
    assert!(
        client
            .enqueue(RawTask::new("kind", "x"))
            .id("after")
            .await
            .unwrap()
            .is_new()
    );
    assert_eq!(starts.next().await, "after");
    let stats = server.stop().await.stats;
    assert_eq!(
        (
            stats.completed,
            stats.archived,
            stats.retried,
            stats.deferred
        ),
        (2, 1, 1, 1)
    );
    assert_eq!((stats.settles_refused, stats.leases_lost), (0, 0));
    assert!(starts.so_far().is_empty(), "nothing ran twice");
}

#[tokio::test]
async fn what_ends_while_redis_is_a_replica_is_settled_once_afterwards() {
    let begin = ["REPLICAOF", "127.0.0.1", "1"];
    settles_afterwards("replica", &begin, &["REPLICAOF", "NO", "ONE"]).await;
}

#[tokio::test]
async fn what_ends_while_redis_lacks_replicas_is_settled_once_afterwards() {
    let set = |n| ["CONFIG", "SET", "min-replicas-to-write", n];
    settles_afterwards("no-replicas", &set("1"), &set("0")).await;
}

/// How many connections this Redis has accepted.
async fn accepted(stage: &Stage) -> u64 {
    let mut info = redis::cmd("INFO");
    let info: String = info
        .arg("stats")
        .query_async(&mut stage.redis())
        .await
        .unwrap();
    let line = info
        .lines()
        .find_map(|line| line.strip_prefix("total_connections_received:"));
    line.unwrap().parse().unwrap()
}

#[tokio::test]
async fn a_redis_that_refuses_every_call_is_not_flooded_with_connections() {
    let begin_and_end: [(&str, &[&str], &[&str]); 2] = [
        (
            "a replica",
            &["REPLICAOF", "127.0.0.1", "1"],
            &["REPLICAOF", "NO", "ONE"],
        ),
        // What it answers to everything while it is one that has lost its master.
        (
            "out of date",
            &["REPLICAOF", "127.0.0.1", "1"],
            &["REPLICAOF", "NO", "ONE"],
        ),
    ];
    for (name, begin, end) in begin_and_end {
        let redis = RedisServer::start(&[]);
        let stage = Stage::on(&redis, "flood").await;
        if name == "out of date" {
            command(&stage, &["CONFIG", "SET", "replica-serve-stale-data", "no"]).await;
        }
        let client = stage.client().await;
        let task = || RawTask::new("kind", "x");
        client.enqueue(task()).await.unwrap();
        assert!(
            client
                .enqueue_many([task()])
                .await
                .iter()
                .all(Result::is_ok)
        );
        command(&stage, begin).await;
        let before = accepted(&stage).await;
        let until = tokio::time::Instant::now() + WINDOW;
        let singles = async {
            let (mut calls, mut slowest) = (0, Duration::ZERO);
            while tokio::time::Instant::now() < until {
                let start = tokio::time::Instant::now();
                client
                    .enqueue(task())
                    .await
                    .expect_err("Redis takes no writes");
                slowest = slowest.max(start.elapsed());
                calls += 1;
            }
            (calls, slowest)
        };
        let lists = async {
            while tokio::time::Instant::now() < until {
                client
                    .enqueue_many([task()])
                    .await
                    .remove(0)
                    .expect_err("no writes");
            }
        };
        let ((calls, slowest), ..) = tokio::join!(singles, lists, lists_too(&client, until));
        let opened = accepted(&stage).await - before;
        println!("{name}: {calls} calls, the slowest took {slowest:?}; {opened} connections");
        assert!(opened <= 20, "{opened}");
        command(&stage, end).await;
        assert!(client.enqueue(task()).await.unwrap().is_new(), "{name}");
    }
}

async fn lists_too(client: &windlass::Client, until: tokio::time::Instant) {
    while tokio::time::Instant::now() < until {
        let many = client.enqueue_many([RawTask::new("kind", "x")]).await;
        assert!(many.iter().all(Result::is_err));
    }
}
