//! A task that waits is ended at once.

use windlass::inspector::{CancelMode, ChangeOutcome};

use crate::support::{HOUR, Stage, task};

const MODES: [CancelMode; 3] = [CancelMode::Decide, CancelMode::Archive, CancelMode::Delete];

#[tokio::test]
async fn a_waiting_task_is_ended_at_once_in_every_state() {
    let stage = Stage::new("waiting").await;
    let client = stage.client().await;
    let inspector = stage.inspector().await;
    let (server, mut calls) = stage.serve_puppet().await;
    for mode in MODES {
        for state in ["scheduled", "retry", "pending"] {
            let enqueue = client.enqueue(task("x")).id("it");
            let enqueue = enqueue.deadline(stage.in_future(HOUR).await);
            match state {
                "retry" => {
                    enqueue.await.unwrap();
                    calls.next().await.retry_after(HOUR / 2);
                }
                "pending" => {
                    stage.pause().await;
                    enqueue.await.unwrap();
                }
                _ => drop(enqueue.delay(HOUR).await.unwrap()),
            }
            stage.wait_for_state("it", state).await;
            let answer = inspector.cancel("default", "it", mode).await.unwrap();
            assert_eq!(answer, ChangeOutcome::Done, "{mode:?} {state}");
            let ended = stage.state("it").await;
            if mode == CancelMode::Delete {
                assert_eq!(ended, "gone", "{state}");
            } else {
                assert_eq!(ended, "archived", "{state}");
                assert_eq!(stage.record("it").await["reason"], "cancelled");
                inspector.delete("default", "it").await.unwrap();
            }
            assert_eq!(stage.count("deadlines").await, 0);
            stage.audit().await;
        }
        stage.resume().await;
    }
    // Nothing of them runs later.
    client.enqueue(task("last")).await.unwrap();
    let call = calls.next().await;
    assert_eq!(call.payload(), "last");
    call.complete();
    assert!(calls.is_empty());
    server.stop().await;
}

#[tokio::test]
async fn a_cancel_that_races_the_claim_ends_the_task_all_the_same() {
    let stage = Stage::new("race").await;
    let client = stage.client().await;
    let inspector = stage.inspector().await;
    let (server, mut calls) = stage.serve_puppet().await;
    let heeds = tokio::spawn(async move {
        loop {
            let call = calls.next().await;
            call.context.cancelled().await;
            call.fail("cut short");
        }
    });
    for n in 0..200 {
        let id = n.to_string();
        client.enqueue(task("x")).id(&id).await.unwrap();
        let cancel = inspector.cancel("default", &id, CancelMode::Archive);
        let answer = cancel.await.unwrap();
        let told = matches!(
            answer,
            ChangeOutcome::Done | ChangeOutcome::Requested { .. }
        );
        assert!(told, "{answer:?}");
    }
    stage.wait_for_count("archived", 200).await;
    assert_eq!(stage.total("archived_cancelled").await, 200);
    heeds.abort();
    server.handle.stop();
    stage.audit().await;
}
