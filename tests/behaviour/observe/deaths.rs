//! Each death is told, counted by the server and counted in Redis once, whoever saw to it.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::UNIX_EPOCH;

use redis::AsyncCommands;
use serde::{Deserialize, Serialize};
use windlass::inspector::CancelMode;
use windlass::server::{Event, Undecodable, UnknownKind};
use windlass::task::RawTask;
use windlass::{Router, Task};

use crate::support::{HOUR, LIMIT, Stage, eventually, ms, puppet_for, task};

#[derive(Serialize, Deserialize)]
struct Export {
    rows: u64,
}

impl Task for Export {
    const KIND: &'static str = "export";
}

async fn export(_: Export) -> Result<(), String> {
    Ok(())
}

/// What the observer is told of each task, by id.
type Told = Arc<Mutex<BTreeMap<String, Vec<String>>>>;

fn note(told: &Told, event: &Event) {
    let (task, text) = match event {
        Event::Retried { task, error, .. } => (task, format!("retried: {error}")),
        Event::Archived {
            task,
            reason,
            error,
            ..
        } => (task, format!("{reason}: {error}")),
        Event::Deleted { task, .. } => (task, "deleted".to_owned()),
        Event::Malformed { task, .. } => (task, "malformed".to_owned()),
        _ => return,
    };
    let mut told = told.lock().unwrap();
    told.entry(task.id.clone()).or_default().push(text);
}

#[tokio::test]
async fn each_death_is_told_and_counted_once_as_redis_did_it() {
    const LOST: &str = "lease expired: its server died or lost its connection";
    let deaths: BTreeMap<&str, &[&str]> = BTreeMap::from([
        ("last retry", &["retried: oh", "retries_exhausted: oh"][..]),
        ("skipped", &["skipped: skipped"]),
        (
            "unknown",
            &["unknown_kind: no handler for tasks of kind \"what\""],
        ),
        (
            "claimed too late",
            &["deadline_passed: its deadline passed"],
        ),
        ("waited too long", &["deadline_passed: its deadline passed"]),
        (
            "retried too late",
            &["deadline_passed: its deadline passed: failed"],
        ),
        ("lost", &["lease_expired: LOST"]),
        ("lost in a row", &["lease_expired: LOST"]),
        ("cancelled", &["cancelled: oh"]),
        ("cancelled and put off", &["cancelled: "]),
        ("cancelled and lost", &["cancelled: LOST"]),
        ("deleted", &["deleted"]),
        ("malformed", &["malformed"]),
    ]);
    let stage = Stage::new("deaths").await;
    let client = stage.client().await;
    let inspector = stage.inspector().await;
    let told = Told::default();
    let notes = told.clone();
    let settings = stage.server().unknown_kind(UnknownKind::Archive);
    let settings = settings
        .retry_delay(|_| ms(1))
        .on_event(move |event| note(&notes, event));
    let (router, mut calls) = puppet_for(Router::new().task(export), "kind");
    let server = stage.serve_with(settings, router).await;

    for &way in deaths.keys() {
        let kind = if way == "unknown" { "what" } else { "kind" };
        let mut enqueue = client.enqueue(RawTask::new(kind, "x")).id(way);
        enqueue = match way {
            "last retry" => enqueue.max_retry(1),
            "claimed too late" => enqueue.deadline(UNIX_EPOCH),
            "waited too long" => enqueue.delay(HOUR).deadline(stage.in_future(ms(50)).await),
            "retried too late" => enqueue.deadline(stage.in_future(HOUR / 2).await),
            "lost in a row" => enqueue,
            "malformed" => enqueue.delay(HOUR),
            _ => enqueue.max_retry(0),
        };
        enqueue.await.unwrap();
        let cancel = |mode| inspector.cancel("default", way, mode);
        match way {
            "last retry" => {
                calls.next().await.fail("oh");
                calls.next().await.fail("oh");
            }
            "skipped" => calls.next().await.skip(),
            "retried too late" => calls.next().await.retry_after(HOUR),
            "lost" => {
                let call = calls.next().await;
                stage.lose(way).await;
                call.cancelled().await;
            }
            "lost in a row" => {
                let call = calls.next().await;
                stage.set(way, "lost", 2).await;
                stage.lose(way).await;
                call.cancelled().await;
            }
            "cancelled" | "cancelled and put off" => {
                let call = calls.next().await;
                cancel(CancelMode::Archive).await.unwrap();
                call.cancelled().await;
                match way {
                    "cancelled" => call.fail("oh"),
                    _ => call.snooze(HOUR),
                }
            }
            "cancelled and lost" => {
                let call = calls.next().await;
                cancel(CancelMode::Archive).await.unwrap();
                call.cancelled().await;
                stage.lose(way).await;
                stage.wait_for_state(way, "archived").await;
            }
            "deleted" => {
                let call = calls.next().await;
                cancel(CancelMode::Delete).await.unwrap();
                call.cancelled().await;
                call.fail("oh");
            }
            "malformed" => {
                let record = stage.record_key(way);
                let _: () = stage.redis().hset(record, "retried", "many").await.unwrap();
                inspector.run("default", way).await.unwrap();
            }
            _ => {}
        }
        let state = if way == "deleted" { "gone" } else { "archived" };
        let record = stage.wait_for_state(way, state).await;
        let told = deaths[way].last().unwrap().replace("LOST", LOST);
        if let (Some(last), Some((_, told))) = (record.get("last_error"), told.split_once(": ")) {
            assert_eq!(told, last, "{way}");
        }
    }
    eventually("all deaths are told", LIMIT, async || {
        let told = told.lock().unwrap().len();
        if told == deaths.len() {
            Ok(())
        } else {
            Err(told)
        }
    })
    .await;
    let stats = server.stop().await.stats;
    for (way, expected) in &deaths {
        let expected: Vec<_> = expected.iter().map(|it| it.replace("LOST", LOST)).collect();
        assert_eq!(told.lock().unwrap()[*way], expected, "{way}");
    }
    let dead = deaths.len() as u64 - 1;
    let totals = (stage.total("archived").await, stage.total("deleted").await);
    assert_eq!((stats.archived, stats.deleted), (dead, 1));
    assert_eq!(totals, (dead, 1));
    assert_eq!((stats.retried, stage.total("retried").await), (1, 1));
    assert_eq!((stats.recovered, stage.total("recovered").await), (3, 3));
}

/// What cannot be decoded is told once, too.
#[tokio::test]
async fn an_undecodable_task_is_told_and_counted_once() {
    let stage = Stage::new("undecodable").await;
    let told = Told::default();
    let notes = told.clone();
    let settings = stage.server().on_event(move |event| note(&notes, event));
    let settings = settings.undecodable(Undecodable::Archive);
    let server = stage.serve_with(settings, Router::new().task(export)).await;
    let client = stage.client().await;
    let enqueue = client.enqueue(RawTask::new("export", [0xc1])).id("bad");
    enqueue.await.unwrap();
    stage.wait_for_state("bad", "archived").await;
    let stats = server.stop().await.stats;
    assert_eq!((stats.archived, stage.total("archived").await), (1, 1));
    let told = told.lock().unwrap();
    assert_eq!(told["bad"].len(), 1);
    assert!(told["bad"][0].starts_with("undecodable: "), "{told:?}");
}

/// A task of a dead server that is tried again is told like any other.
#[tokio::test]
async fn a_lost_lease_that_is_repeated_is_told_as_a_retry() {
    let stage = Stage::new("repeated").await;
    let told = Told::default();
    let notes = told.clone();
    let settings = stage.server().on_event(move |event| note(&notes, event));
    let (router, mut calls) = puppet_for(Router::new(), "kind");
    let server = stage.serve_with(settings, router).await;
    let client = stage.client().await;
    client.enqueue(task("x")).id("it").await.unwrap();
    let call = calls.next().await;
    stage.lose("it").await;
    call.cancelled().await;
    calls.next().await.complete();
    stage.wait_for_state("it", "gone").await;
    let stats = server.stop().await.stats;
    let retried = "retried: lease expired: its server died or lost its connection";
    assert_eq!(told.lock().unwrap()["it"], [retried]);
    assert_eq!((stats.retried, stats.recovered, stats.completed), (1, 1, 1));
    assert_eq!(stage.total("retried").await, 1);
}
