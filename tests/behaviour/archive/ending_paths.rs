//! Whatever way a task takes into the archive, the cap holds, and no record stays without a place.

use std::time::{Duration, UNIX_EPOCH};

use redis::AsyncCommands;
use serde::{Deserialize, Serialize};
use windlass::inspector::CancelMode;
use windlass::server::{Undecodable, UnknownKind};
use windlass::{Client, Task};

use super::sweeper;
use crate::support::{Calls, HOUR, Stage, puppet, task};

const CAP: usize = 3;

#[derive(Serialize, Deserialize)]
struct Typed;

impl Task for Typed {
    const KIND: &'static str = "typed";
}

/// A path into the archive; the server and its handler are there.
async fn send(path: &str, id: &str, stage: &Stage, client: &Client, calls: &mut Calls) {
    let inspector = stage.inspector().await;
    let enqueue = client.enqueue(task("x")).id(id);
    match path {
        "skipped" => {
            enqueue.await.unwrap();
            calls.next().await.skip();
        }
        "retries_exhausted" => {
            enqueue.max_retry(0).await.unwrap();
            calls.next().await.fail("the only try");
        }
        "deadline_passed" => drop(enqueue.deadline(UNIX_EPOCH).await.unwrap()),
        "lease_expired" => {
            enqueue.delay(HOUR).await.unwrap();
            stage.set(id, "lost", 2).await;
            stage.lose(id).await;
        }
        "operator" => {
            enqueue.delay(HOUR).await.unwrap();
            inspector.archive("default", id).await.unwrap();
        }
        "cancelled" => {
            enqueue.delay(HOUR).await.unwrap();
            let cancel = inspector.cancel("default", id, CancelMode::Archive);
            cancel.await.unwrap();
        }
        "unknown_kind" => {
            let enqueue = client.enqueue(windlass::task::RawTask::new("other", "x"));
            enqueue.id(id).await.unwrap();
        }
        "undecodable" => {
            let enqueue = client.enqueue(windlass::task::RawTask::new("typed", [0xc1]));
            enqueue.id(id).await.unwrap();
        }
        "malformed" => {
            enqueue.delay(HOUR).await.unwrap();
            let record = stage.record_key(id);
            let _: () = stage.redis().hdel(record, "kind").await.unwrap();
            let now = stage.now().await;
            stage.place("scheduled", id, now).await;
        }
        _ => unreachable!("{path}"),
    }
}

#[tokio::test]
async fn the_cap_holds_by_every_path_into_the_archive() {
    let paths = [
        "skipped",
        "retries_exhausted",
        "deadline_passed",
        "lease_expired",
        "operator",
        "cancelled",
        "unknown_kind",
        "undecodable",
        "malformed",
    ];
    for path in paths {
        let stage = Stage::new("paths").await;
        let client = stage.client().await;
        let (router, mut calls) = puppet();
        let router = router.task(async |_: Typed| Ok::<_, String>(()));
        let settings = stage.server().unknown_kind(UnknownKind::Archive);
        let settings = settings.undecodable(Undecodable::Archive);
        // Sweeps when all are there: the first one just after the start.
        let settings = settings.sweep_interval(HOUR);
        let server = stage.serve_with(settings, router.clone()).await;
        for n in 0..CAP + 5 {
            send(path, &n.to_string(), &stage, &client, &mut calls).await;
            stage.wait_for_count("archived", n + 1).await;
            let reason = &stage.record(&n.to_string()).await["reason"];
            assert_eq!(reason, path);
        }
        assert_eq!(server.stop().await.stats.swept, 0);
        let newest = stage.ids("archived").await.split_off(5);
        let server = sweeper(&stage, CAP, HOUR, router).await;
        stage.wait_for_total("swept_archived", 5).await;
        assert_eq!(stage.ids("archived").await, newest, "{path}");
        assert_eq!(stage.keys("t:").await.len(), CAP, "{path}");
        server.stop().await;
        stage.audit().await;
    }
}

#[tokio::test]
async fn completed_tasks_leave_at_the_end_of_their_own_retention() {
    let stage = Stage::new("completed").await;
    let client = stage.client().await;
    let (router, calls) = puppet();
    calls.complete_all();
    // The archive's caps are not theirs.
    let server = sweeper(&stage, 0, Duration::ZERO, router).await;
    for (id, retention) in [("short", 1500), ("long", 3_600_000)] {
        for n in 0..5 {
            let enqueue = client.enqueue(task("x")).id(format!("{id} {n}"));
            enqueue
                .retention(Duration::from_millis(retention))
                .await
                .unwrap();
        }
    }
    stage.wait_for_total("swept_completed", 5).await;
    let left = stage.ids("completed").await;
    assert_eq!(left, ["long 0", "long 1", "long 2", "long 3", "long 4"]);
    server.stop().await;
    stage.audit().await;
}
