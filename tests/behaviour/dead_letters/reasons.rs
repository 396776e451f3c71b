//! Each way to die is told, with its reason.

use std::time::UNIX_EPOCH;

use serde::{Deserialize, Serialize};
use windlass::inspector::CancelMode;
use windlass::server::Undecodable;
use windlass::task::RawTask;
use windlass::{Router, Task};

use super::{hooked, serve_hooked, until_none_is_owed};
use crate::support::{HOUR, Stage, task};

#[tokio::test]
async fn every_reason_reaches_the_hook() {
    let stage = Stage::new("reasons").await;
    let client = stage.client().await;
    let inspector = stage.inspector().await;
    let (server, mut calls, mut letters) = serve_hooked(&stage).await;
    for (reason, error, attempt) in [
        ("skipped", "skipped", 1_u32),
        ("retries_exhausted", "the last try", 2),
        ("deadline_passed", "its deadline passed", 0),
        ("lease_expired", "lease expired", 1),
        ("cancelled", "", 0),
    ] {
        let mut enqueue = client.enqueue(task(reason)).id(reason).max_retry(1);
        enqueue = enqueue.header("tenant", reason);
        if reason == "deadline_passed" {
            enqueue = enqueue.deadline(UNIX_EPOCH);
        }
        if ["lease_expired", "cancelled"].contains(&reason) {
            enqueue = enqueue.delay(HOUR);
        }
        let before = stage.now().await;
        enqueue.await.unwrap();
        match reason {
            "skipped" => calls.next().await.skip(),
            "retries_exhausted" => {
                calls.next().await.retry_after(Default::default());
                calls.next().await.fail("the last try");
            }
            "lease_expired" => {
                stage.set(reason, "lost", 2).await;
                stage.lose(reason).await;
            }
            "cancelled" => {
                let cancel = inspector.cancel("default", reason, CancelMode::Decide);
                cancel.await.unwrap();
            }
            _ => {}
        }
        let run = letters.next().await;
        let letter = &run.letter;
        assert_eq!((&*letter.id, &*letter.reason), (reason, reason));
        assert_eq!((&*letter.kind, &*letter.queue), ("kind", "default"));
        assert_eq!(
            (&*letter.payload, letter.header("tenant")),
            (reason.as_bytes(), Some(reason))
        );
        let numbers = (letter.attempt, letter.retried, letter.max_retry);
        assert_eq!(numbers, (attempt, attempt.saturating_sub(1), 1));
        assert!(letter.error.starts_with(error), "{letter:?}");
        let died = letter
            .died_at
            .duration_since(UNIX_EPOCH)
            .unwrap()
            .as_millis();
        assert_eq!(
            died,
            u128::from(stage.score("archived", reason).await.unwrap())
        );
        assert!(died >= u128::from(before));
        assert_eq!(stage.ids("hooks").await, [reason], "owed while it runs");
        run.done();
        until_none_is_owed(&stage).await;
        assert_eq!(stage.state(reason).await, "archived");
    }
    assert_eq!(stage.total("hooks_run").await, 5);
    assert_eq!(server.stop().await.stats.hooks_run, 5);
    assert!(letters.is_empty());
    stage.audit().await;
}

#[tokio::test]
async fn a_deadline_that_forbids_another_attempt_makes_the_first_one_the_last() {
    let stage = Stage::new("deadline").await;
    let client = stage.client().await;
    let (server, mut calls, mut letters) = serve_hooked(&stage).await;
    let deadline = stage.in_future(HOUR).await;
    client.enqueue(task("x")).deadline(deadline).await.unwrap();
    calls.next().await.retry_after(2 * HOUR);
    let run = letters.next().await;
    let letter = &run.letter;
    assert_eq!(letter.reason, "deadline_passed");
    assert_eq!((letter.attempt, letter.retried), (1, 0));
    run.done();
    until_none_is_owed(&stage).await;
    server.stop().await;
}

#[derive(Serialize, Deserialize, Debug, PartialEq)]
struct Export {
    rows: u64,
}

impl Task for Export {
    const KIND: &'static str = "export";
}

#[tokio::test]
async fn what_cannot_be_decoded_reaches_the_hook_as_it_is() {
    let stage = Stage::new("undecodable").await;
    let client = stage.client().await;
    let router = Router::new().task(async |_: Export| Err::<(), _>("never"));
    let (router, mut letters) = hooked(router, "export");
    let settings = stage.server().undecodable(Undecodable::Archive);
    let server = stage.serve_with(settings, router).await;
    client
        .enqueue(RawTask::new("export", [0xc1, 0]))
        .await
        .unwrap();
    let run = letters.next().await;
    assert_eq!(run.letter.reason, "undecodable");
    assert_eq!(run.letter.payload, [0xc1, 0]);
    assert!(run.letter.task::<Export>().is_err());
    run.done();

    // A hook can have the task in its own type.
    let rows = (1 << 53) + 1;
    client.enqueue(Export { rows }).max_retry(0).await.unwrap();
    let run = letters.next().await;
    assert_eq!(run.letter.task::<Export>().unwrap(), Export { rows });
    run.done();
    until_none_is_owed(&stage).await;
    server.stop().await;
}
