//! How many hooks run at a time.

use std::collections::BTreeSet;
use std::time::Duration;

use super::{Letter, hooked, serve_hooked, until_none_is_owed};
use crate::support::{Stage, puppet, task};

/// Time enough for a ninth hook to begin, which nothing else can show.
const A_WHILE: Duration = Duration::from_millis(700);

#[tokio::test]
async fn at_most_eight_run_at_a_time_and_all_run_once() {
    let stage = Stage::new("eight").await;
    let client = stage.client().await;
    let (server, mut calls, mut letters) = serve_hooked(&stage).await;
    let tasks = (0..60).map(|n: u32| task("x").id(n.to_string()));
    assert!(client.enqueue_many(tasks).await.iter().all(Result::is_ok));
    for _ in 0..60 {
        calls.next().await.skip();
    }
    stage.wait_for_count("archived", 60).await;

    let mut ran = BTreeSet::new();
    let mut running: Vec<Letter> = Vec::new();
    while ran.len() < 60 {
        while running.len() < 8.min(60 - ran.len()) {
            running.push(letters.next().await);
        }
        if ran.len() < 8 {
            tokio::time::sleep(A_WHILE).await;
        }
        assert!(letters.is_empty(), "a ninth one runs");
        let one = running.swap_remove(ran.len() % running.len());
        assert!(ran.insert(one.letter.id.clone()), "{} again", one.letter.id);
        one.done();
    }
    until_none_is_owed(&stage).await;
    assert_eq!(server.stop().await.stats.hooks_run, 60);
    assert!(letters.is_empty());
    stage.audit().await;
}

#[tokio::test]
async fn two_servers_do_not_run_the_same_hook() {
    let stage = Stage::new("two").await;
    let client = stage.client().await;
    let (router, mut calls) = puppet();
    let (router, mut letters) = hooked(router, "kind");
    let servers = [stage.serve(router.clone()).await, stage.serve(router).await];
    let tasks = (0..100).map(|n: u32| task("x").id(n.to_string()));
    assert!(client.enqueue_many(tasks).await.iter().all(Result::is_ok));
    for _ in 0..100 {
        calls.next().await.skip();
    }
    let mut ran = BTreeSet::new();
    for _ in 0..100 {
        let one = letters.next().await;
        assert!(ran.insert(one.letter.id.clone()), "{} again", one.letter.id);
        one.done();
    }
    until_none_is_owed(&stage).await;
    for server in servers {
        server.stop().await;
    }
    assert_eq!(stage.total("hooks_run").await, 100);
    assert!(letters.is_empty());
}

#[tokio::test]
async fn one_that_hangs_does_not_hold_up_the_others() {
    let stage = Stage::new("held-up").await;
    let client = stage.client().await;
    let (server, mut calls, mut letters) = serve_hooked(&stage).await;
    client.enqueue(task("x")).id("hangs").await.unwrap();
    calls.next().await.skip();
    let hangs = letters.next().await;
    let began = std::time::Instant::now();
    for n in 0..20 {
        client.enqueue(task("x")).id(n.to_string()).await.unwrap();
        calls.next().await.skip();
        letters.next().await.done();
    }
    // Before it was given up.
    assert!(began.elapsed() < std::time::Duration::from_secs(9));
    assert_eq!(hangs.letter.id, "hangs");
    hangs.done();
    until_none_is_owed(&stage).await;
    server.stop().await;
}
