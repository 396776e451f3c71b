//! A hook need not run where its task died.

use std::time::Duration;

use windlass::Router;
use windlass::inspector::{CancelMode, ChangeOutcome};
use windlass::server::UnknownKind;

use super::{hooked, serve_hooked, until_none_is_owed};
use crate::support::{Stage, puppet, puppet_for, task};

/// A task `dead` that was ended from outside and owes its hook, which a server that is gone had.
async fn owe_a_hook(stage: &Stage, router: &Router) {
    drop(stage.server().build(router.clone()).await.unwrap());
    stage.enqueue_for_later("dead").await;
    let inspector = stage.inspector().await;
    let ended = inspector
        .cancel("default", "dead", CancelMode::Decide)
        .await;
    assert_eq!(ended.unwrap(), ChangeOutcome::Done);
}

#[tokio::test]
async fn the_archiver_may_lack_the_kind() {
    let stage = Stage::new("lacks").await;
    let client = stage.client().await;
    let (knows, _calls, mut letters) = serve_hooked(&stage).await;
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
    owe_a_hook(&stage, &router).await;
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

#[tokio::test]
#[ignore = "runs in a child process of other tests"]
async fn hangs_in_its_hook() {
    if let Some(stage) = Stage::of_parent().await {
        let router = puppet().0.on_dead_letter("kind", |letter| {
            println!("hook {}", letter.id);
            std::future::pending::<Result<(), String>>()
        });
        stage.serve_for_ever(stage.server(), router).await;
    }
}

#[tokio::test]
async fn a_hook_whose_server_was_killed_runs_on_another_one() {
    let stage = Stage::new("killed").await;
    let mut worker = stage.child("dead_letters::elsewhere::hangs_in_its_hook");
    let (router, _calls) = puppet();
    let (router, mut letters) = hooked(router, "kind");
    owe_a_hook(&stage, &router).await;
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
