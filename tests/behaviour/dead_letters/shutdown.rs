//! A server that stops waits a little for its hooks, and gives back what it cuts off.

use std::time::{Duration, Instant};

use super::{Letters, hooked, serve_hooked, until_none_is_owed};
use crate::support::{LIMIT, Running, Stage, eventually, puppet, task};

async fn with_hanging_hooks(stage: &Stage, hooks: usize) -> (Running, Letters) {
    let client = stage.client().await;
    let (server, mut calls, letters) = serve_hooked(stage).await;
    for _ in 0..hooks {
        client.enqueue(task("x")).await.unwrap();
        calls.next().await.skip();
    }
    let wanted = hooks.min(8);
    eventually("they hang", LIMIT, async || {
        (letters.len() == wanted).then_some(())
    })
    .await;
    (server, letters)
}

async fn time_to_stop(server: Running) -> Duration {
    let began = Instant::now();
    server.stop().await;
    began.elapsed()
}

#[tokio::test]
async fn hooks_that_hang_delay_a_shutdown_by_at_most_350_ms() {
    // The best of each, because this machine may have something else to do.
    let mut best = [Duration::MAX; 2];
    for _ in 0..5 {
        for (best, hooks) in best.iter_mut().zip([0, 8]) {
            let stage = Stage::new("delay").await;
            let (server, _letters) = with_hanging_hooks(&stage, hooks).await;
            *best = time_to_stop(server).await.min(*best);
        }
    }
    let [without, with] = best;
    println!("shutdown: {without:?} without hooks, {with:?} with 8 that hang");
    assert!(
        with < without + Duration::from_millis(350),
        "{without:?} {with:?}"
    );
}

#[tokio::test]
async fn hooks_that_end_within_the_grace_are_done() {
    let stage = Stage::new("grace").await;
    let (server, mut letters) = with_hanging_hooks(&stage, 3).await;
    let three = [
        letters.next().await,
        letters.next().await,
        letters.next().await,
    ];
    // The hooks hear of a stop once the handlers have ended.
    server.handle.stop();
    let stopping = tokio::spawn(server.end());
    tokio::time::sleep(Duration::from_millis(150)).await;
    for one in three {
        one.done();
    }
    let stats = stopping.await.unwrap().stats;
    assert_eq!((stats.hooks_run, stats.hooks_cut), (3, 0));
    assert_eq!(stage.count("hooks").await, 0);
    assert_eq!(stage.total("hooks_run").await, 3);
    stage.audit().await;
}

#[tokio::test]
async fn what_was_cut_off_is_owed_at_once_and_counted() {
    let stage = Stage::new("given-back").await;
    let (server, letters) = with_hanging_hooks(&stage, 20).await;
    assert_eq!(server.stop().await.stats.hooks_cut, 8);
    let now = stage.now().await;
    let owed = stage.scores("hooks").await;
    assert_eq!(owed.len(), 20);
    for (id, not_before) in owed {
        assert!(not_before as u64 <= now, "{id} is held until {not_before}");
    }
    assert_eq!(stage.total("hooks_run").await, 0);
    drop(letters);
    let (router, mut letters) = hooked(puppet().0, "kind");
    let server = stage.serve(router).await;
    for _ in 0..20 {
        letters.next().await.done();
    }
    until_none_is_owed(&stage).await;
    assert_eq!(server.stop().await.stats.hooks_run, 20);
    stage.audit().await;
}
