//! A hook need not run where its task died.

use std::time::Duration;

use windlass::{Router, UnknownKind};

use super::{hooked, until_none_is_owed};
use crate::support::{Stage, child, puppet, puppet_for, task};

#[tokio::test]
async fn the_archiver_may_lack_the_kind() {
    let stage = Stage::new("lacks").await;
    let client = stage.client().await;
    let (router, _calls) = puppet();
    let (router, mut letters) = hooked(router, "kind");
    let knows = stage.serve(router).await;
    knows.handle.quiet();
    let (router, _others) = puppet_for(Router::new(), "other");
    let (router, others) = hooked(router, "other");
    let settings = stage.server().unknown_kind(UnknownKind::Archive);
    let lacks = stage.serve_with(settings, router).await;
    for n in 0..10 {
        client.enqueue(task("x")).id(n.to_string()).await.unwrap();
        let run = letters.next().await;
        assert_eq!(
            (run.letter.id.clone(), &*run.letter.reason),
            (n.to_string(), "unknown_kind")
        );
        run.done();
    }
    until_none_is_owed(&stage).await;
    assert_eq!(knows.stop().await.stats.hooks_run, 10);
    let report = lacks.stop().await;
    assert_eq!((report.stats.archived, report.stats.hooks_run), (10, 0));
    assert!(others.is_empty());
}

#[tokio::test]
async fn it_waits_for_a_server_that_has_it() {
    let stage = Stage::new("waits").await;
    let client = stage.client().await;
    let (router, mut calls) = puppet();
    let (hooked_router, mut letters) = hooked(router.clone(), "kind");
    drop(stage.server().build(hooked_router.clone()).await.unwrap());
    let without = stage.serve(router).await;
    client.enqueue(task("x")).id("dead").await.unwrap();
    calls.next().await.skip();
    stage.wait_for_state("dead", "archived").await;
    assert_eq!(without.stop().await.stats.hooks_dropped, 0);
    assert_eq!(stage.ids("hooks").await, ["dead"]);
    let with = stage.serve(hooked_router).await;
    letters.next().await.done();
    until_none_is_owed(&stage).await;
    with.stop().await;
}

#[tokio::test]
async fn a_hold_that_runs_out_is_taken_by_another_server() {
    let stage = Stage::new("hold").await;
    let (router, _calls) = puppet();
    let (router, mut letters) = hooked(router, "kind");
    drop(stage.server().build(router.clone()).await.unwrap());
    stage.enqueue_for_later("dead").await;
    let inspector = stage.inspector().await;
    inspector
        .cancel("default", "dead", Default::default())
        .await
        .unwrap();
    // Held by a server that is dead, for two more seconds.
    let until = stage.now().await + 2_000;
    stage.place("hooks", "dead", until).await;
    let server = stage.serve(router).await;
    let run = letters.next().await;
    assert!(stage.now().await >= until);
    run.done();
    until_none_is_owed(&stage).await;
    server.stop().await;
}

#[test]
#[ignore = "runs in a child process of other tests"]
fn hangs_in_its_hook() {
    if !child::end_with_parent() {
        return;
    }
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async {
        let stage = Stage::from_environment().await;
        let router = puppet().0.on_dead_letter("kind", |letter| {
            println!("hook {}", letter.id);
            std::future::pending::<Result<(), String>>()
        });
        let server = stage.server().build(router).await.unwrap();
        let _ = server.run_until(std::future::pending()).await;
    });
}

#[tokio::test]
async fn a_hook_whose_server_was_killed_runs_on_another_one() {
    let stage = Stage::new("killed").await;
    let environment = stage.environment();
    let mut worker = child::spawn("dead_letters::elsewhere::hangs_in_its_hook", &environment);
    let (router, _calls) = puppet();
    let (router, mut letters) = hooked(router, "kind");
    drop(stage.server().build(router.clone()).await.unwrap());
    stage.enqueue_for_later("dead").await;
    let inspector = stage.inspector().await;
    inspector
        .cancel("default", "dead", Default::default())
        .await
        .unwrap();
    let hook = worker.wait_for_line("hook ", Duration::from_secs(30)).await;
    assert_eq!(hook, "dead");
    worker.signal("KILL");
    worker.wait_exit(Duration::from_secs(10)).await;
    assert_eq!(stage.ids("hooks").await, ["dead"], "still owed");
    super::hurry(&stage, "dead").await;
    let server = stage.serve(router).await;
    letters.next().await.done();
    until_none_is_owed(&stage).await;
    server.stop().await;
    stage.audit().await;
}
