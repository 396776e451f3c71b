//! Payloads and records that cannot be read.

use std::sync::{Arc, Mutex};

use redis::AsyncCommands;
use serde::{Deserialize, Serialize};
use windlass::{Event, RawTask, Router, ServerBuilder, Task};

use crate::support::Stage;

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
    let server = stage.serve_with(stage.server(), router()).await;
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

/// Settings that note the ids that are reported as malformed.
fn noting(settings: ServerBuilder) -> (ServerBuilder, Arc<Mutex<Vec<String>>>) {
    let ids = Arc::new(Mutex::new(Vec::new()));
    let noted = ids.clone();
    let settings = settings.on_event(move |event| {
        if let Event::Malformed { id, .. } = event {
            noted.lock().unwrap().push(id.to_string());
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
