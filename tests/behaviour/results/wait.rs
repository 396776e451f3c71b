//! Waiting for one task.

use std::time::{Duration, Instant};

use redis::AsyncCommands;
use serde::{Deserialize, Serialize};
use windlass::Router;
use windlass::client::{WaitError, WaitOutcome};
use windlass::inspector::CancelMode;
use windlass::task::RawTask;

use super::{enqueue_and_wait, heard, until_waited_for, wait_for};
use crate::support::{HOUR, LIMIT, Stage, ms, puppet, task};

/// Why a task was archived and what it failed with; `None` where the task is gone.
fn archived<T: std::fmt::Debug>(waited: &WaitOutcome<T>) -> Option<(&str, &str)> {
    match waited {
        WaitOutcome::Archived { reason, error, .. } => Some((reason, error)),
        WaitOutcome::Gone => None,
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_wait_that_begins_before_the_end_hears_of_it() {
    let stage = Stage::new("before").await;
    let client = stage.client().await;
    let (server, mut calls) = stage.serve_puppet().await;
    let (_, wait) = enqueue_and_wait(&stage, &client).await;
    calls.next().await.complete_with("sum");
    assert_eq!(heard(wait).await, WaitOutcome::Completed("sum".to_owned()));
    assert_eq!(stage.count("waiters").await, 0);
    server.stop().await;
}

#[tokio::test]
async fn a_wait_lasts_through_retries_and_snoozes() {
    let stage = Stage::new("through").await;
    let client = stage.client().await;
    let (server, mut calls) = stage.serve_puppet().await;
    let (id, wait) = enqueue_and_wait(&stage, &client).await;
    calls.next().await.retry_after(ms(100));
    calls.next().await.snooze(HOUR);
    stage.wait_for_state(&id, "scheduled").await;
    stage.lose(&id).await;
    let call = calls.next().await;
    assert!(!wait.is_finished());
    call.complete_with("third time lucky");
    let waited = heard(wait).await;
    assert_eq!(
        waited,
        WaitOutcome::Completed("third time lucky".to_owned())
    );
    server.stop().await;
}

#[tokio::test]
async fn every_way_to_end_is_told() {
    let stage = Stage::new("ways").await;
    let client = stage.client().await;
    let inspector = stage.inspector().await;
    let (router, mut calls) = puppet();
    let settings = stage.server().queues([("default", 1), ("other", 1)]);
    let server = stage.serve_with(settings, router).await;
    let ways = [
        ("complete", None),
        ("revoke", None),
        ("skip", Some(("skipped", "skipped"))),
        ("fail", Some(("retries_exhausted", "the only try"))),
        ("deadline", Some(("deadline_passed", "its deadline passed"))),
        ("archive", Some(("operator", ""))),
        ("cancel", Some(("cancelled", ""))),
        ("delete", None),
    ];
    for (way, ended) in ways {
        let waits = ["deadline", "archive", "cancel", "delete"].contains(&way);
        let mut enqueue = client.enqueue(task("x")).max_retry(0);
        if waits {
            enqueue = enqueue.delay(HOUR);
        }
        if way == "deadline" {
            enqueue = enqueue.deadline(stage.in_future(ms(3000)).await);
        }
        let id = enqueue.await.unwrap().id;
        let call = if waits {
            None
        } else {
            Some(calls.next().await)
        };
        let wait = wait_for(&client, &id);
        until_waited_for(&stage, 1).await;
        match (way, call) {
            ("complete", Some(call)) => call.complete(),
            ("revoke", Some(call)) => call.revoke(),
            ("skip", Some(call)) => call.skip(),
            ("fail", Some(call)) => call.fail("the only try"),
            ("archive", _) => drop(inspector.archive("default", &id).await.unwrap()),
            ("delete", _) => drop(inspector.delete("default", &id).await.unwrap()),
            ("cancel", _) => {
                let cancel = inspector.cancel("default", &id, CancelMode::Decide);
                drop(cancel.await.unwrap());
            }
            _ => {}
        }
        assert_eq!(archived(&heard(wait).await), ended, "{way}");
        // Once more, after the end.
        let late = client.wait::<String>("default", &id, LIMIT).await.unwrap();
        assert_eq!(archived(&late), ended, "{way}");
    }
    server.stop().await;
}

#[tokio::test]
async fn a_task_that_is_set_aside_or_missing_is_told() {
    let stage = Stage::new("broken").await;
    let client = stage.client().await;
    for found in ["claimed", "due", "past its deadline", "lost"] {
        let damages = [
            ("missing", None),
            ("no hash", None),
            ("no kind", Some(("malformed", ""))),
        ];
        for (damage, ended) in damages {
            let mut enqueue = client.enqueue(task("x"));
            if found != "claimed" {
                enqueue = enqueue.delay(HOUR);
            }
            let id = enqueue.await.unwrap().id;
            match found {
                "due" => stage.place("scheduled", &id, 1).await,
                "past its deadline" => stage.place("deadlines", &id, 1).await,
                "lost" => stage.lose(&id).await,
                _ => {}
            }
            let wait = wait_for(&client, &id);
            until_waited_for(&stage, 1).await;
            let record = stage.record_key(&id);
            let mut redis = stage.redis();
            match damage {
                "no kind" => redis.hdel(&record, "kind").await.unwrap(),
                _ => {
                    let _: () = redis.del(&record).await.unwrap();
                }
            }
            if damage == "no hash" {
                let _: () = redis.lpush(&record, "x").await.unwrap();
            }
            let (server, _) = stage.serve_puppet().await;
            assert_eq!(archived(&heard(wait).await), ended, "{found}, {damage}");
            server.stop().await;
        }
    }
}

#[tokio::test]
async fn an_unknown_id_is_gone_at_once() {
    let stage = Stage::new("unknown").await;
    let client = stage.client().await;
    let began = Instant::now();
    let waited = client
        .wait::<()>("default", "unknown", LIMIT)
        .await
        .unwrap();
    assert_eq!(waited, WaitOutcome::Gone);
    assert!(
        began.elapsed() < Duration::from_secs(8),
        "{:?}",
        began.elapsed()
    );
    assert_eq!(stage.keys("").await, [""; 0]);
    for (queue, id) in [("a:b", "id"), ("", "id"), ("default", "{"), ("default", "")] {
        let refused = client.wait::<()>(queue, id, LIMIT).await;
        assert!(
            matches!(refused, Err(WaitError::Name(_))),
            "{queue:?} {id:?}"
        );
    }
}

#[tokio::test]
async fn a_wait_has_its_time_and_no_more() {
    let stage = Stage::new("time-out").await;
    let client = stage.client().await;
    client.enqueue(task("x")).id("never").await.unwrap();
    for time in [Duration::ZERO, ms(500)] {
        let began = Instant::now();
        let waited = client.wait::<()>("default", "never", time).await.unwrap();
        assert_eq!(waited, WaitOutcome::TimedOut);
        let took = began.elapsed();
        assert!(
            (time..time + Duration::from_secs(8)).contains(&took),
            "{took:?}"
        );
    }
}

#[derive(Serialize, Deserialize, Debug, PartialEq)]
struct Receipt {
    cents: u64,
    lines: Vec<String>,
}

#[tokio::test]
async fn a_result_has_its_type() {
    let stage = Stage::new("type").await;
    let client = stage.client().await;
    let receipt = || Receipt {
        cents: (1 << 53) + 1,
        lines: vec!["ü\0".to_owned()],
    };
    let router = Router::new()
        .raw("kind", move |_: RawTask| async move {
            Ok::<_, String>(receipt())
        })
        .raw("unit", |_: RawTask| async { Ok::<_, String>(()) })
        .raw("none", |_: RawTask| async { Ok::<_, String>(None::<u64>) });
    let server = stage.serve(router).await;
    for kind in ["kind", "unit", "none"] {
        let enqueue = client.enqueue(RawTask::new(kind, "x")).id(kind);
        enqueue.retention(HOUR).await.unwrap();
        stage.wait_for_state(kind, "completed").await;
    }
    let wrong = client.wait::<u64>("default", "kind", LIMIT).await;
    assert!(matches!(wrong, Err(WaitError::Result(_))), "{wrong:?}");
    let wrong = client.wait::<Receipt>("default", "unit", LIMIT).await;
    assert!(matches!(wrong, Err(WaitError::Result(_))), "{wrong:?}");
    let right = client.wait("default", "kind", LIMIT).await.unwrap();
    assert_eq!(right, WaitOutcome::Completed(receipt()));
    for kind in ["unit", "none"] {
        let nothing = client.wait::<Option<u64>>("default", kind, LIMIT).await;
        assert_eq!(nothing.unwrap(), WaitOutcome::Completed(None), "{kind}");
        let nothing = client.wait::<()>("default", kind, LIMIT).await.unwrap();
        assert_eq!(nothing, WaitOutcome::Completed(()), "{kind}");
    }
    server.stop().await;
}
