//! A record that stands in no state is found.

use redis::AsyncCommands;

use crate::support::{HOUR, Stage, puppet, task};

#[tokio::test]
async fn a_record_that_stands_nowhere_runs_again() {
    let stage = Stage::new("stray").await;
    let client = stage.client().await;
    let (server, mut calls) = stage.serve_puppet().await;
    let enqueue = client.enqueue(task("x")).id("stray").delay(HOUR);
    enqueue.header("kept", "yes").await.unwrap();
    stage.enqueue_for_later("other").await;
    let _: () = stage
        .redis()
        .zrem(stage.key("scheduled"), "stray")
        .await
        .unwrap();
    let call = calls.next().await;
    assert_eq!((call.id(), call.context.retried()), ("stray", 1));
    assert_eq!(call.context.header("kept"), Some("yes"));
    call.complete();
    stage.wait_for_state("stray", "gone").await;
    assert_eq!(stage.total("adopted").await, 1);
    assert_eq!(stage.state("other").await, "scheduled");
    assert_eq!(server.stop().await.stats.recovered, 1);
    stage.audit().await;
}

#[tokio::test]
async fn one_that_has_no_tries_left_is_archived() {
    let stage = Stage::new("exhausted").await;
    let client = stage.client().await;
    let (server, calls) = stage.serve_puppet().await;
    let enqueue = client.enqueue(task("x")).id("stray").delay(HOUR);
    enqueue.max_retry(0).await.unwrap();
    let _: () = stage
        .redis()
        .zrem(stage.key("scheduled"), "stray")
        .await
        .unwrap();
    assert_eq!(stage.wait_for_reason("stray").await, "lease_expired");
    assert!(calls.is_empty());
    server.stop().await;
    stage.audit().await;
}

#[tokio::test]
async fn many_are_found_and_each_runs_once() {
    let stage = Stage::new("many").await;
    let client = stage.client().await;
    let (router, mut calls) = puppet();
    let tasks = (0..300).map(|n: u32| task("x").id(n.to_string()));
    assert!(client.enqueue_many(tasks).await.iter().all(Result::is_ok));
    let _: () = stage.redis().del(stage.key("pending")).await.unwrap();
    let mut servers = Vec::new();
    for _ in 0..3 {
        servers.push(stage.serve(router.clone()).await);
    }
    let mut ran = std::collections::BTreeSet::new();
    for _ in 0..300 {
        let call = calls.next().await;
        assert!(ran.insert(call.id().to_owned()), "{} ran twice", call.id());
        call.complete();
    }
    // Each was lost once, which counts as a try, and done once.
    stage.wait_for_total("processed", 600).await;
    assert_eq!(stage.total("recovered").await, 300);
    assert_eq!(stage.total("adopted").await, 300);
    assert!(calls.is_empty());
    for server in servers {
        server.stop().await;
    }
    stage.audit().await;
}

#[tokio::test]
async fn a_record_of_a_queue_that_nobody_serves_is_left_alone() {
    let stage = Stage::new("unserved").await;
    let client = stage.client().await;
    let (server, mut calls) = stage.serve_puppet().await;
    let enqueue = client.enqueue(task("x")).queue("other").id("stray");
    enqueue.delay(HOUR).await.unwrap();
    let scheduled = stage.key_of("other", "scheduled");
    let _: () = stage.redis().zrem(scheduled, "stray").await.unwrap();
    // One of the server's own is found after it.
    stage.enqueue_for_later("own").await;
    let _: () = stage
        .redis()
        .zrem(stage.key("scheduled"), "own")
        .await
        .unwrap();
    let call = calls.next().await;
    assert_eq!(call.id(), "own");
    call.complete();
    server.stop().await;
    let exists: bool = stage
        .redis()
        .exists(stage.key_of("other", "t:stray"))
        .await
        .unwrap();
    assert!(exists);
}
