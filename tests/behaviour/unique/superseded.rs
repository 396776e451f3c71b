//! A task whose lock a newer one took over while it ran: unless it succeeds, it is dropped.

use std::sync::{Arc, Mutex};

use redis::AsyncCommands;
use windlass::inspector::{CancelMode, ChangeOutcome};
use windlass::server::Event;
use windlass::{Client, Unique};

use crate::support::{Call, Calls, HOUR, LIMIT, Stage, eventually, puppet, task};

/// Enqueues a task that replaces those before it; returns its id.
async fn enqueue(client: &Client, payload: &str, max_retry: u32) -> String {
    let enqueue = client.enqueue(task(payload)).max_retry(max_retry);
    let unique = Unique::replace().key("key");
    let enqueued = enqueue.retention(HOUR).unique(unique).await.unwrap();
    enqueued.require_new().unwrap()
}

/// A running task that a newer one has superseded, which has ended since.
async fn superseded(stage: &Stage, calls: &mut Calls, max_retry: u32) -> (String, Call) {
    let client = stage.client().await;
    let first = enqueue(&client, "1", max_retry).await;
    let running = calls.next().await;
    let second = enqueue(&client, "2", max_retry).await;
    let call = calls.next().await;
    assert_eq!((call.id(), &*call.payload()), (&*second, "2"));
    call.complete();
    stage.wait_for_state(&second, "completed").await;
    (first, running)
}

#[tokio::test]
async fn an_attempt_that_does_not_succeed_is_dropped_however_it_ends() {
    const LOST: &str = "lease expired: its server died or lost its connection";
    let stage = Stage::new("dropped").await;
    let inspector = stage.inspector().await;
    let told = Arc::new(Mutex::new(Vec::new()));
    let notes = told.clone();
    let settings = stage.server().on_event(move |event| {
        if let Event::Superseded { task, error, .. } = event {
            notes.lock().unwrap().push((task.id.clone(), error.clone()));
        }
    });
    let (router, mut calls) = puppet();
    let server = stage.serve_with(settings, router).await;
    let ends = [
        ("fails", "oh"),
        ("fails for the last time", "oh"),
        ("skips", "skipped"),
        ("snoozes", ""),
        ("loses its lease", LOST),
        ("loses its last lease", LOST),
        ("fails when cancelled", "oh"),
        ("snoozes when an operator archives it", ""),
    ];
    let mut dropped = Vec::new();
    for (end, error) in ends {
        let max_retry = u32::from(!end.contains("last"));
        let (id, call) = superseded(&stage, &mut calls, max_retry).await;
        match end {
            "fails when cancelled" => {
                let mode = CancelMode::Archive;
                inspector.cancel("default", &id, mode).await.unwrap();
                call.cancelled().await;
            }
            "snoozes when an operator archives it" => {
                inspector.archive("default", &id).await.unwrap();
                call.cancelled().await;
            }
            _ => {}
        }
        match end.split(' ').next().unwrap() {
            "fails" => call.fail("oh"),
            "skips" => call.skip(),
            "snoozes" => call.snooze(HOUR),
            _ => {
                stage.lose(&id).await;
                call.cancelled().await;
            }
        }
        stage.wait_for_state(&id, "gone").await;
        stage.audit().await;
        dropped.push((id, error.to_owned()));
    }
    eventually("each is told", LIMIT, async || {
        (told.lock().unwrap().len() == ends.len()).then_some(())
    })
    .await;
    assert!(calls.is_empty(), "nothing runs again");
    assert_eq!(*told.lock().unwrap(), dropped);
    let stats = server.stop().await.stats;
    let n = ends.len() as u64;
    assert_eq!((stats.superseded, stage.total("superseded").await), (n, n));
    assert_eq!((stats.archived, stats.retried, stats.deferred), (0, 0, 0));
    assert_eq!(stage.total("deleted").await, 0);
}

#[tokio::test]
async fn an_attempt_that_succeeds_completes() {
    let stage = Stage::new("succeeds").await;
    let (server, mut calls) = stage.serve_puppet().await;
    let (id, call) = superseded(&stage, &mut calls, 1).await;
    call.complete();
    stage.wait_for_state(&id, "completed").await;
    let stats = server.stop().await.stats;
    assert_eq!((stats.completed, stats.superseded), (2, 0));
    stage.audit().await;
}

#[tokio::test]
async fn an_attempt_that_is_handed_back_is_dropped() {
    let stage = Stage::new("handed-back").await;
    let (router, mut calls) = puppet();
    let server = stage.serve_with(stage.hasty_server(), router).await;
    let (id, _call) = superseded(&stage, &mut calls, 1).await;
    let stats = server.stop().await.stats;
    assert_eq!((stats.superseded, stats.released), (1, 0));
    assert_eq!(stage.state(&id).await, "gone");
    stage.audit().await;
}

#[tokio::test]
async fn an_operator_who_archives_one_of_a_dead_server_is_told() {
    let stage = Stage::new("dead-server").await;
    let (server, mut calls) = stage.serve_puppet().await;
    let (id, call) = superseded(&stage, &mut calls, 1).await;
    let key = format!("{}:server:{}", stage.prefix, call.context.server_id());
    server.handle.quiet();
    let archive = async || {
        // It shows itself again at each heartbeat.
        let _: () = stage.redis().del(&key).await.unwrap();
        let inspector = stage.inspector().await;
        let answer = inspector.archive("default", &id).await.unwrap();
        (answer == ChangeOutcome::Superseded).then_some(())
    };
    eventually("it is taken over", LIMIT, archive).await;
    assert_eq!(stage.state(&id).await, "gone");
    drop(call);
    server.stop().await;
    stage.audit().await;
}

#[tokio::test]
async fn an_operator_does_not_run_one_again() {
    let stage = Stage::new("run").await;
    let inspector = stage.inspector().await;
    for state in ["scheduled", "archived"] {
        stage.enqueue_for_later("it").await;
        if state == "archived" {
            inspector.archive("default", "it").await.unwrap();
        }
        // A server of 0.1 lets it wait, or archives it.
        stage.set("it", "superseded", 1).await;
        let answer = inspector.run("default", "it").await.unwrap();
        assert_eq!(answer, ChangeOutcome::Superseded);
        assert_eq!(stage.state("it").await, "gone");
        stage.audit().await;
    }
    assert_eq!(stage.total("superseded").await, 2);
}
