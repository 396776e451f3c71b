//! Payloads and records that cannot be read.

use std::sync::{Arc, Mutex};

use redis::AsyncCommands;
use serde::{Deserialize, Serialize};
use windlass::server::{Event, ServerBuilder, Undecodable};
use windlass::task::RawTask;
use windlass::{NewTask, Router, Task, defaults};

use crate::support::{HOUR, LIMIT, Stage, eventually};

#[derive(Serialize, Deserialize)]
struct Typed {
    number: u32,
}

impl Task for Typed {
    const KIND: &'static str = "typed";
}

fn router() -> Router {
    Router::new().task(|task: Typed| async move { Err::<(), _>(format!("ran {}", task.number)) })
}

#[tokio::test]
async fn what_does_not_decode_is_archived_with_the_reason() {
    let stage = Stage::new("undecodable").await;
    let client = stage.client().await;
    let mut trailing = b"\x81\xa6number\x07".to_vec();
    trailing.push(0);
    let mut deep = b"\x81\xa1x".to_vec();
    deep.extend([0x91; 100_000]);
    let payloads: [(&[u8], &str); 6] = [
        (b"", "the payload could not be decoded"),
        (b"\xc1", "the payload could not be decoded"),
        (b"\x81\xa6number\xa1x", "the payload could not be decoded"),
        (b"\x80", "missing field `number`"),
        (&trailing, "has 1 bytes after its end"),
        (&deep, "nested deeper than 64 levels"),
    ];
    for (place, (payload, _)) in payloads.iter().enumerate() {
        let task = RawTask::new("typed", *payload);
        client.enqueue(task).id(place.to_string()).await.unwrap();
    }
    let settings = stage.server().undecodable(Undecodable::Archive);
    let server = stage.serve_with(settings, router()).await;
    for (place, (payload, words)) in payloads.iter().enumerate() {
        let record = stage.wait_for_state(&place.to_string(), "archived").await;
        assert_eq!(record["reason"], "undecodable");
        let error = &record["last_error"];
        assert!(error.contains(words), "{place}: {error}");
        assert!(record["payload"] == String::from_utf8_lossy(payload));
    }
    stage.audit().await;
    assert_eq!(server.stop().await.stats.archived, 6);
}

/// The kind `typed` as a later version has it.
#[derive(Serialize, Deserialize)]
struct Later {
    number: u32,
    shape: Shape,
}

#[derive(Serialize, Deserialize)]
enum Shape {
    Round,
}

impl Task for Later {
    const KIND: &'static str = "typed";
}

/// The kind as an earlier version has it: without the shape that all later ones have.
fn earlier() -> RawTask {
    RawTask::new("typed", *b"\x81\xa6number\x07")
}

fn later() -> Later {
    let shape = Shape::Round;
    Later { number: 7, shape }
}

#[tokio::test]
async fn what_does_not_decode_is_put_off_and_spends_no_retry() {
    let stage = Stage::new("put-off").await;
    let router = Router::new().task(async |_: Later| Ok::<_, String>(()));
    let server = stage.serve(router).await;
    let client = stage.client().await;
    let enqueue = client.enqueue(earlier()).id("task").max_retry(0);
    enqueue.await.unwrap();
    let record = stage.wait_for_state("task", "retry").await;
    let error = &record["last_error"];
    assert!(error.contains("missing field `shape`"), "{error}");
    assert_eq!(record["undecodable"], "1");
    assert_eq!(record.get("retried"), None);
    let failed: u64 = record["last_failed_at"].parse().unwrap();
    let due = stage.score("retry", "task").await.unwrap();
    assert!((failed + 5_000..=failed + 15_001).contains(&due));
    stage
        .inspector()
        .await
        .run("default", "task")
        .await
        .unwrap();
    stage.wait_for_state("task", "retry").await;

    // In the end it is archived.
    let times = u64::from(defaults::MAX_UNDECODABLE) - 1;
    client
        .enqueue(earlier())
        .id("last")
        .delay(HOUR)
        .await
        .unwrap();
    stage.set("last", "undecodable", times).await;
    let now = stage.now().await;
    stage.place("scheduled", "last", now).await;
    client.enqueue(later()).await.unwrap();
    let record = stage.wait_for_state("last", "archived").await;
    assert_eq!(record["reason"], "undecodable");
    stage.audit().await;
    server.stop().await;
}

/// A deployment: both versions of the worker serve the queue, and both versions of the producer fill
/// it. Neither worker can read what the other's producer has sent.
#[tokio::test]
async fn each_of_two_versions_leaves_to_the_other_what_it_cannot_read() {
    #[derive(Serialize, Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Earlier {
        number: u32,
    }
    impl Task for Earlier {
        const KIND: &'static str = "typed";
    }
    const EACH: usize = 10;
    let stage = Stage::new("versions").await;
    let old = Router::new().task(async |_: Earlier| Ok::<_, String>(()));
    let new = Router::new().task(async |_: Later| Ok::<_, String>(()));
    let tasks = (0..EACH).flat_map(|_| [NewTask::from(earlier()), later().into()]);
    let ids = stage
        .enqueue_many(tasks.map(|task| task.max_retry(0)))
        .await;
    let servers = [stage.serve(old).await, stage.serve(new).await];
    let inspector = stage.inspector().await;
    eventually("each has run where it can be read", LIMIT, async || {
        for id in &ids {
            // Instead of a wait of some seconds. One that is not put off is left alone.
            let _ = inspector.run("default", id).await;
        }
        let census = stage.audit().await;
        let done = census.succeeded == ids.len() as u64;
        if done { Ok(()) } else { Err(census) }
    })
    .await;
    for server in servers {
        let stats = server.stop().await.stats;
        assert_eq!((stats.completed, stats.archived), (EACH as u64, 0));
    }
}

/// Settings that note the ids that are reported as malformed.
fn noting(settings: ServerBuilder) -> (ServerBuilder, Arc<Mutex<Vec<String>>>) {
    let ids = Arc::new(Mutex::new(Vec::new()));
    let noted = ids.clone();
    let settings = settings.on_event(move |event| {
        if let Event::Malformed { task, .. } = event {
            noted.lock().unwrap().push(task.id.clone());
        }
    });
    (settings, ids)
}

#[tokio::test]
async fn a_malformed_record_is_set_aside_and_the_others_run() {
    let stage = Stage::new("malformed").await;
    let client = stage.client().await;
    for id in [
        "good 1", "number", "no kind", "no hash", "kind", "missing", "good 2",
    ] {
        client
            .enqueue(Typed { number: 7 })
            .id(id)
            .max_retry(0)
            .await
            .unwrap();
    }
    let mut redis = stage.redis();
    let key = |id: &str| stage.key(&format!("t:{id}"));
    let _: () = redis
        .hset(key("number"), "max_retry", "many")
        .await
        .unwrap();
    let _: () = redis.hset(key("kind"), "kind", b"\xff").await.unwrap();
    let _: () = redis.hdel(key("no kind"), "kind").await.unwrap();
    let _: () = redis.set(key("no hash"), "x").await.unwrap();
    let _: () = redis.del(key("missing")).await.unwrap();

    let (settings, reported) = noting(stage.server());
    let server = stage.serve_with(settings, router()).await;
    for id in ["good 1", "good 2"] {
        let record = stage.wait_for_state(id, "archived").await;
        assert_eq!(record["last_error"], "ran 7");
    }
    for id in ["number", "no kind", "kind"] {
        let record = stage.wait_for_state(id, "archived").await;
        assert_eq!(record["reason"], "malformed", "{id}");
    }
    for id in ["missing", "no hash"] {
        assert_eq!(stage.state(id).await, "gone");
    }
    let kept: String = redis.get(stage.key("malformed:no hash")).await.unwrap();
    assert_eq!(kept, "x");
    stage.audit().await;
    server.stop().await;
    let mut reported = reported.lock().unwrap().clone();
    reported.sort_unstable();
    assert_eq!(reported, ["kind", "no hash", "no kind", "number"]);
}
