//! What a hook writes to is away for long: the test lets the time pass.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use windlass::handler::DeadLetter;

use super::until_none_is_owed;
use crate::support::{LIMIT, Stage, eventually, ms, puppet, seen, task};

const MINUTE: u64 = 60_000;
const IDS: [&str; 3] = ["a", "b", "c"];

/// Waits until a hook is put off; returns for how long, in ms.
async fn pause(stage: &Stage, id: &str) -> u64 {
    eventually("it is put off", LIMIT, async || {
        // In this order: one script notes both the failure and until when the hook is put off.
        let failed = stage.field(id, "hook_failed").await;
        let is_new = failed.is_some() && failed != stage.field(id, "noted").await;
        let due = stage.score("hooks", id).await?;
        is_new.then_some(due.saturating_sub(stage.now().await))
    })
    .await
}

/// Lets so much time pass for a dead task.
async fn pass(stage: &Stage, id: &str, time: u64) {
    let failed = stage.field(id, "hook_failed").await;
    let failed = failed.expect("it has failed").parse().expect("a number");
    stage.set(id, "noted", failed).await;
    let died = stage.score("archived", id).await.expect("it is kept");
    stage.place("archived", id, died - time).await;
    let due = stage.score("hooks", id).await.expect("it is owed");
    stage.place("hooks", id, due - time).await;
}

#[tokio::test]
async fn hooks_whose_database_is_away_for_90_minutes_run_all_afterwards() {
    let stage = Stage::new("away").await;
    let client = stage.client().await;
    let (router, mut calls) = puppet();
    let is_away = Arc::new(AtomicBool::new(true));
    let (writes, mut written) = seen();
    let away = is_away.clone();
    let router = router.on_dead_letter("kind", move |letter: DeadLetter| {
        let done = if away.load(Ordering::SeqCst) {
            Err("the database is away".to_owned())
        } else {
            writes.send(letter.id).map_err(|error| error.to_string())
        };
        async { done }
    });
    // The archive itself has no room at all.
    let settings = stage.server().archive_limits(0, ms(1));
    let server = stage.serve_with(settings, router).await;
    for id in IDS {
        client.enqueue(task("x")).id(id).await.unwrap();
        calls.next().await.skip();
        let (mut passed, mut pauses) = (0, Vec::new());
        while passed < 90 * MINUTE {
            let pause = pause(&stage, id).await;
            pauses.push(pause);
            passed += pause;
            pass(&stage, id, pause).await;
        }
        // 30 s, doubling up to 10 min, and a tenth more or less.
        let expected = [0.5, 1.0, 2.0, 4.0, 8.0, 10.0, 10.0];
        for (pause, expected) in pauses.iter().zip(expected) {
            let minutes = *pause as f64 / MINUTE as f64;
            assert!((0.85..1.12).contains(&(minutes / expected)), "{pauses:?}");
        }
        assert!((11..16).contains(&pauses.len()), "{pauses:?}");
    }
    is_away.store(false, Ordering::SeqCst);
    for id in IDS {
        // It may have failed once more in between.
        let due = stage.now().await;
        stage.place("hooks", id, due).await;
    }
    let mut written = written.take(IDS.len()).await;
    written.sort();
    assert_eq!(written, IDS);
    until_none_is_owed(&stage).await;
    // Now nothing keeps them.
    stage.wait_for_count("archived", 0).await;
    let stats = server.stop().await.stats;
    assert_eq!((stats.hooks_run, stats.hooks_dropped), (3, 0));
    stage.audit().await;
}
