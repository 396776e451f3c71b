//! What runs no hook.

use windlass::inspector::{CancelMode, ChangeOutcome};

use super::{hooked, only_the_next_runs_one, serve_hooked, until_none_is_owed};
use crate::support::{Stage, puppet, puppet_for, task};

#[tokio::test]
async fn what_an_operator_archives_runs_none() {
    let stage = Stage::new("operator").await;
    let client = stage.client().await;
    let inspector = stage.inspector().await;
    let (server, mut calls, mut letters) = serve_hooked(&stage).await;
    stage.enqueue_for_later("waits").await;
    let answer = inspector.archive("default", "waits").await.unwrap();
    assert_eq!(answer, ChangeOutcome::Done);
    assert_eq!(stage.wait_for_reason("waits").await, "operator");

    // One that runs is told to end, and that an operator archives it holds to its end.
    client.enqueue(task("x")).id("runs").await.unwrap();
    let call = calls.next().await;
    let answer = inspector.archive("default", "runs").await.unwrap();
    assert!(
        matches!(answer, ChangeOutcome::Requested { .. }),
        "{answer:?}"
    );
    call.cancelled().await;
    call.fail("cut short");
    assert_eq!(stage.wait_for_reason("runs").await, "operator");
    assert_eq!(stage.count("hooks").await, 0);
    assert_eq!(stage.total("archived_operator").await, 2);
    only_the_next_runs_one(&client, &mut calls, &mut letters).await;
    server.stop().await;
    stage.audit().await;
}

#[tokio::test]
async fn what_is_done_or_deleted_runs_none() {
    let stage = Stage::new("done").await;
    let client = stage.client().await;
    let inspector = stage.inspector().await;
    let (server, mut calls, mut letters) = serve_hooked(&stage).await;
    for n in 0..4 {
        client.enqueue(task("x")).id(n.to_string()).await.unwrap();
        let call = calls.next().await;
        match n {
            0 => call.complete(),
            1 => call.revoke(),
            _ => {
                let answer = match n {
                    2 => inspector.delete("default", "2").await.unwrap(),
                    _ => {
                        let cancel = inspector.cancel("default", "3", CancelMode::Delete);
                        cancel.await.unwrap()
                    }
                };
                assert!(
                    matches!(answer, ChangeOutcome::Requested { .. }),
                    "{answer:?}"
                );
                call.cancelled().await;
                call.fail("cut short");
            }
        }
        stage.wait_for_state(&n.to_string(), "gone").await;
    }
    stage.enqueue_for_later("waits").await;
    let cancel = inspector.cancel("default", "waits", CancelMode::Delete);
    assert_eq!(cancel.await.unwrap(), ChangeOutcome::Done);
    only_the_next_runs_one(&client, &mut calls, &mut letters).await;
    server.stop().await;
    stage.audit().await;
}

#[tokio::test]
async fn a_kind_without_a_hook_owes_none() {
    let stage = Stage::new("without").await;
    let client = stage.client().await;
    let (router, mut calls) = puppet();
    let (router, mut others) = puppet_for(router, "other");
    let (router, mut letters) = hooked(router, "other");
    let server = stage.serve(router).await;
    client.enqueue(task("x")).id("plain").await.unwrap();
    calls.next().await.skip();
    stage.wait_for_state("plain", "archived").await;
    let other = windlass::task::RawTask::new("other", "x");
    client.enqueue(other).id("hooked").await.unwrap();
    others.next().await.skip();
    let run = letters.next().await;
    assert_eq!(run.letter.id, "hooked");
    assert_eq!(stage.ids("hooks").await, ["hooked"]);
    run.done();
    until_none_is_owed(&stage).await;
    server.stop().await;
}

#[tokio::test]
async fn a_task_that_left_the_archive_owes_none() {
    let stage = Stage::new("left").await;
    let inspector = stage.inspector().await;
    let (router, mut calls) = puppet();
    let (router, mut letters) = hooked(router, "kind");
    // Registered, but nobody is there to run it.
    drop(stage.server().build(router.clone()).await.unwrap());
    for id in ["run", "deleted"] {
        stage.enqueue_for_later(id).await;
        let cancel = inspector.cancel("default", id, CancelMode::Archive);
        cancel.await.unwrap();
    }
    assert_eq!(stage.count("hooks").await, 2);
    inspector.run("default", "run").await.unwrap();
    inspector.delete("default", "deleted").await.unwrap();
    assert_eq!(stage.count("hooks").await, 0);

    let server = stage.serve(router).await;
    let call = calls.next().await;
    assert!(letters.is_empty());
    // Dead again, it owes it again.
    call.skip();
    let run = letters.next().await;
    assert_eq!((&*run.letter.id, &*run.letter.reason), ("run", "skipped"));
    run.done();
    until_none_is_owed(&stage).await;
    server.stop().await;
    stage.audit().await;
}
