//! What makes two tasks the same.

use std::collections::HashMap;

use futures::future::join_all;
use serde::{Deserialize, Serialize};
use windlass::client::{EnqueueError, EnqueueOutcome};
use windlass::task::RawTask;
use windlass::{NewTask, Task, Unique};

use super::assert_duplicate_of;
use crate::support::{Stage, task};

#[tokio::test]
async fn the_key_is_the_kind_and_the_payload() {
    let stage = Stage::new("digest").await;
    let client = stage.client().await;
    let enqueue = async |kind: &str, payload: &str| {
        let enqueue = client.enqueue(RawTask::new(kind, payload));
        enqueue.unique(Unique::until_done()).await.unwrap()
    };
    let first = enqueue("kind", "payload").await;
    assert!(first.is_new());
    assert_duplicate_of(&first.id, &enqueue("kind", "payload").await);
    for (kind, payload) in [("other", "payload"), ("kind", "other"), ("kindp", "ayload")] {
        assert!(enqueue(kind, payload).await.is_new(), "{kind} {payload}");
    }
}

#[derive(Serialize, Deserialize)]
struct Report {
    totals: HashMap<String, HashMap<u32, u32>>,
}

impl Task for Report {
    const KIND: &'static str = "report";
}

#[tokio::test]
async fn equal_payloads_are_the_same_whatever_the_order_of_their_maps() {
    let stage = Stage::new("maps").await;
    let client = stage.client().await;
    let inner = || (0..20).map(|n| (n, n)).collect();
    let totals = || (0..20).map(|n| (n.to_string(), inner())).collect();
    let enqueue = async || {
        let enqueue = client.enqueue(Report { totals: totals() });
        enqueue.unique(Unique::until_done()).await.unwrap()
    };
    let first = enqueue().await;
    assert!(first.is_new());
    for _ in 0..10 {
        assert_duplicate_of(&first.id, &enqueue().await);
    }
}

#[tokio::test]
async fn a_given_key_stands_for_the_payload_and_belongs_to_its_kind() {
    let stage = Stage::new("given").await;
    let client = stage.client().await;
    let enqueue = async |kind: &str, payload: &str, lock: Unique| {
        let enqueue = client.enqueue(RawTask::new(kind, payload));
        enqueue.unique(lock).await.unwrap()
    };
    let given = |key: &str| Unique::until_done().key(key);
    let first = enqueue("kind", "x", given("order:17")).await;
    assert!(first.is_new());
    assert_duplicate_of(&first.id, &enqueue("kind", "y", given("order:17")).await);
    assert!(enqueue("kind", "x", given("order:18")).await.is_new());
    assert!(enqueue("other", "x", given("order:17")).await.is_new());

    let shared = || given("order:17").across_kinds();
    let first = enqueue("kind", "x", shared()).await;
    assert!(first.is_new());
    assert_duplicate_of(&first.id, &enqueue("other", "y", shared()).await);
}

#[tokio::test]
async fn no_given_key_takes_the_place_of_a_computed_one() {
    let stage = Stage::new("forged").await;
    let client = stage.client().await;
    let enqueue = async |lock: Unique| {
        let enqueue = client.enqueue(task("x")).unique(lock);
        enqueue.await.unwrap()
    };
    assert!(enqueue(Unique::until_done()).await.is_new());
    let computed = stage.keys("unique:").await.remove(0);
    let digest = computed.rsplit(':').next().unwrap();
    assert_eq!(digest.len(), 40, "{computed}");
    let forged = Unique::until_done().key(digest);
    assert!(enqueue(forged.clone()).await.is_new());
    assert!(enqueue(forged.across_kinds()).await.is_new());
}

#[tokio::test]
async fn a_key_that_cannot_be_is_refused() {
    let stage = Stage::new("bad-key").await;
    let client = stage.client().await;
    let done = Unique::until_done;
    for bad in [done().key("{"), done().key(" "), done().across_kinds()] {
        let enqueue = client.enqueue(task("x")).unique(bad);
        let error = enqueue.await.unwrap_err();
        assert!(matches!(error, EnqueueError::Invalid(_)), "{error}");
    }
}

#[tokio::test]
async fn modes_share_the_lock_of_a_key() {
    let stage = Stage::new("mixed").await;
    let client = stage.client().await;
    let inspector = stage.inspector().await;
    for (held, holder) in super::every_mode() {
        if held == "time" {
            continue;
        }
        let first = super::enqueue(&client, holder).await;
        for (asked, unique) in super::every_mode() {
            let second = super::enqueue(&client, unique).await;
            let outcome = if (held, asked) == ("replace", "replace") {
                EnqueueOutcome::Replaced
            } else {
                EnqueueOutcome::Duplicate
            };
            let seen = (second.id, second.outcome);
            assert_eq!(seen, (first.id.clone(), outcome), "{held} {asked}");
        }
        inspector.delete("default", &first.id).await.unwrap();
    }
}

#[tokio::test]
async fn locks_of_different_queues_are_independent() {
    let stage = Stage::new("queues").await;
    let client = stage.client().await;
    let enqueue = async |queue: &str| {
        let enqueue = client.enqueue(task("x")).queue(queue);
        enqueue
            .unique(Unique::until_done().key("key"))
            .await
            .unwrap()
    };
    let [first, second] = [enqueue("first").await, enqueue("second").await];
    assert!(first.is_new() && second.is_new());
    assert_duplicate_of(&first.id, &enqueue("first").await);
    stage
        .inspector()
        .await
        .delete("first", &first.id)
        .await
        .unwrap();
    assert!(enqueue("first").await.is_new());
    assert_duplicate_of(&second.id, &enqueue("second").await);
}

#[tokio::test]
async fn of_many_at_the_same_time_one_is_accepted() {
    let stage = Stage::new("at-once").await;
    let (one, other) = (stage.client().await, stage.client().await);
    for (mode, unique) in super::every_mode() {
        let unique = unique.key(mode);
        let sends = (0..50).map(|n| {
            let client = if n % 2 == 0 { &one } else { &other };
            client.enqueue(task("x")).unique(unique.clone()).send()
        });
        let answers: Vec<_> = join_all(sends)
            .await
            .into_iter()
            .map(Result::unwrap)
            .collect();
        let ids: std::collections::BTreeSet<_> = answers.iter().map(|a| &a.id).collect();
        assert_eq!(ids.len(), 1, "{mode}: all answers name the holder");
        assert_eq!(answers.iter().filter(|a| a.is_new()).count(), 1, "{mode}");
    }
    stage.audit().await;
}

#[tokio::test]
async fn one_of_a_list_is_accepted() {
    let stage = Stage::new("list").await;
    let client = stage.client().await;
    let many = |unique: Unique| (0..3).map(move |n| NewTask::unique(task([n]), unique.clone()));
    for (mode, unique) in super::every_mode() {
        let answers = client.enqueue_many(many(unique.key(mode))).await;
        let answers: Vec<_> = answers.into_iter().map(Result::unwrap).collect();
        let refusal = match mode {
            "replace" => EnqueueOutcome::Replaced,
            _ => EnqueueOutcome::Duplicate,
        };
        let outcomes: Vec<_> = answers.iter().map(|answer| answer.outcome).collect();
        assert_eq!(outcomes, [EnqueueOutcome::New, refusal, refusal], "{mode}");
        assert!(answers.iter().all(|answer| answer.id == answers[0].id));
        let payload = stage.look(&answers[0].id).await.unwrap().payload;
        assert_eq!(payload, [if mode == "replace" { 2 } else { 0 }], "{mode}");
    }
    stage.audit().await;
}
