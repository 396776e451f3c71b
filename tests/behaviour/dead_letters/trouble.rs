//! A hook that fails, panics or hangs is tried again, and stops nobody.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use redis::AsyncCommands;
use windlass::handler::DeadLetter;
use windlass::server::Event;

use super::{hooked, hurry, serve_hooked, until_none_is_owed};
use crate::support::{Stage, puppet, seen, task, within};

#[tokio::test]
async fn a_hook_that_fails_is_tried_again() {
    let stage = Stage::new("fails").await;
    let client = stage.client().await;
    let (server, mut calls, mut letters) = serve_hooked(&stage).await;
    for id in ["bad", "good"] {
        client.enqueue(task("x")).id(id).await.unwrap();
        calls.next().await.skip();
        let run = letters.next().await;
        assert_eq!(run.letter.id, id);
        match id {
            "bad" => run.fail("not now"),
            _ => run.done(),
        }
    }
    for _ in 0..2 {
        hurry(&stage, "bad").await;
        let run = letters.next().await;
        assert_eq!((&*run.letter.id, &*run.letter.reason), ("bad", "skipped"));
        run.fail("still not");
    }
    hurry(&stage, "bad").await;
    letters.next().await.done();
    until_none_is_owed(&stage).await;
    assert_eq!(server.stop().await.stats.hooks_run, 2);
    assert_eq!(stage.total("hooks_run").await, 2);
    assert_eq!(stage.total("hooks_dropped").await, 0);
    stage.audit().await;
}

#[tokio::test]
async fn a_hook_whose_task_cannot_be_read_is_dropped_and_told() {
    let stage = Stage::new("unreadable").await;
    let client = stage.client().await;
    let (router, mut calls) = puppet();
    // The hook is known, and a server that has none archives the task.
    drop(
        stage
            .server()
            .build(hooked(router.clone(), "kind").0)
            .await
            .unwrap(),
    );
    let server = stage.serve(router).await;
    client.enqueue(task("x")).id("dead").await.unwrap();
    calls.next().await.skip();
    stage.wait_for_state("dead", "archived").await;
    server.stop().await;
    let record = stage.record_key("dead");
    let _: () = stage.redis().hset(record, "retried", "many").await.unwrap();
    let (tell, mut told) = seen();
    let settings = stage.server().on_event(move |event| {
        if let Event::HookDropped { task, .. } = event {
            let _ = tell.send(task.id.clone());
        }
    });
    let (router, _letters) = hooked(puppet().0, "kind");
    let server = stage.serve_with(settings, router).await;
    assert_eq!(told.next().await, "dead");
    let stats = server.stop().await.stats;
    assert_eq!((stats.hooks_run, stats.hooks_dropped), (0, 1));
    let totals = (
        stage.total("hooks_run").await,
        stage.total("hooks_dropped").await,
    );
    assert_eq!(totals, (0, 1));
}

#[tokio::test]
async fn a_hook_that_panics_is_caught_counted_and_tried_again() {
    let stage = Stage::new("panics").await;
    let client = stage.client().await;
    let (router, mut calls) = puppet();
    let tries = Arc::new(AtomicUsize::new(0));
    let counted = tries.clone();
    let router = router.on_dead_letter("kind", move |letter: DeadLetter| {
        let tries = counted.fetch_add(1, Ordering::Relaxed);
        // Once before its future is there, and once in it.
        assert!(tries != 0, "no future for {}", letter.id);
        async move {
            assert!(tries != 1, "no end for {}", letter.id);
            Ok::<_, String>(())
        }
    });
    let server = stage.serve(router).await;
    client.enqueue(task("x")).id("dead").await.unwrap();
    calls.next().await.skip();
    for _ in 0..2 {
        hurry(&stage, "dead").await;
    }
    until_none_is_owed(&stage).await;
    assert_eq!(tries.load(Ordering::Relaxed), 3);
    let report = server.stop().await;
    assert_eq!((report.stats.hooks_run, report.stats.panics), (1, 2));
    assert_eq!(report.stats.hooks_failed, 2);
}

#[tokio::test]
async fn a_hook_that_hangs_is_given_up_and_tried_again() {
    let stage = Stage::new("hangs").await;
    let client = stage.client().await;
    let (server, mut calls, mut letters) = serve_hooked(&stage).await;
    client.enqueue(task("x")).id("dead").await.unwrap();
    calls.next().await.skip();
    let hangs = letters.next().await;
    let began = Instant::now();
    let mut answer = hangs.answer;
    within("it is given up", Duration::from_secs(30), answer.closed()).await;
    let took = began.elapsed();
    assert!((9..25).contains(&took.as_secs()), "{took:?}");
    hurry(&stage, "dead").await;
    letters.next().await.done();
    until_none_is_owed(&stage).await;
    let stats = server.stop().await.stats;
    assert_eq!((stats.hooks_run, stats.hooks_failed), (1, 1));
    stage.audit().await;
}

#[tokio::test]
async fn a_hook_that_outlives_its_task_ends_in_peace() {
    let stage = Stage::new("outlives").await;
    let client = stage.client().await;
    let (server, mut calls, mut letters) = serve_hooked(&stage).await;
    client.enqueue(task("x")).id("dead").await.unwrap();
    calls.next().await.skip();
    let run = letters.next().await;
    stage
        .inspector()
        .await
        .delete("default", "dead")
        .await
        .unwrap();
    run.done();
    client.enqueue(task("x")).id("next").await.unwrap();
    calls.next().await.skip();
    letters.next().await.done();
    until_none_is_owed(&stage).await;
    server.stop().await;
    assert_eq!(stage.ids("archived").await, ["next"]);
    stage.audit().await;
}
