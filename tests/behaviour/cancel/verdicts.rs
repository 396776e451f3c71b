//! What becomes of a running task that was cancelled: its handler's verdict goes first, then the mode.

use std::collections::BTreeMap;
use std::time::Duration;

use redis::AsyncCommands;
use windlass::inspector::{CancelMode, ChangeOutcome};

use crate::support::{Call, HOUR, LIMIT, Stage, eventually, puppet, task};

/// A task that is cancelled while it runs, and what its handler then says.
async fn cancelled(
    stage: &Stage,
    mode: CancelMode,
    max_retry: u32,
    say: impl FnOnce(Call),
) -> (&'static str, BTreeMap<String, String>) {
    let client = stage.client().await;
    let inspector = stage.inspector().await;
    let (server, mut calls) = stage.serve_puppet().await;
    let enqueue = client.enqueue(task("x")).id("it").max_retry(max_retry);
    enqueue.await.unwrap();
    let call = calls.next().await;
    inspector.cancel("default", "it", mode).await.unwrap();
    call.cancelled().await;
    say(call);
    let settled = async || (stage.count("active").await == 0).then_some(());
    eventually("it is settled", LIMIT, settled).await;
    server.stop().await;
    stage.audit().await;
    let (state, record) = (stage.state("it").await, stage.record("it").await);
    assert!(!record.contains_key("cancel"));
    let started = record.contains_key("started_at");
    assert!(started || state == "gone", "its handler was called");
    stage
        .inspector()
        .await
        .delete("default", "it")
        .await
        .unwrap();
    (state, record)
}

const MODES: [CancelMode; 3] = [CancelMode::Decide, CancelMode::Archive, CancelMode::Delete];

#[tokio::test]
async fn a_handler_that_completes_completes() {
    let stage = Stage::new("completes").await;
    for mode in MODES {
        let (state, _) = cancelled(&stage, mode, 25, |call| call.complete()).await;
        assert_eq!(state, "gone", "{mode:?}");
    }
    assert_eq!(stage.total("archived").await, 0);
}

#[tokio::test]
async fn a_handler_that_says_skip_or_revoke_has_said_it() {
    let stage = Stage::new("says").await;
    for mode in MODES {
        let (state, record) = cancelled(&stage, mode, 25, |call| call.skip()).await;
        assert_eq!(
            (state, &*record["reason"]),
            ("archived", "skipped"),
            "{mode:?}"
        );
        let (state, _) = cancelled(&stage, mode, 25, |call| call.revoke()).await;
        assert_eq!(state, "gone", "{mode:?}");
    }
    assert_eq!(stage.total("archived").await, 3);
}

#[tokio::test]
async fn the_mode_says_what_becomes_of_a_retry() {
    let stage = Stage::new("retry").await;
    for mode in MODES {
        for own_delay in [false, true] {
            let (state, record) = cancelled(&stage, mode, 25, |call| {
                if own_delay {
                    call.retry_after(HOUR)
                } else {
                    call.fail("failed")
                }
            })
            .await;
            let reason = record.get("reason").map(String::as_str);
            let error = record.get("last_error").map(String::as_str);
            let wanted = match mode {
                CancelMode::Archive => ("archived", Some("cancelled"), Some("failed")),
                CancelMode::Delete => ("gone", None, None),
                _ => ("retry", None, Some("failed")),
            };
            assert_eq!((state, reason, error), wanted, "{mode:?}");
        }
    }
}

#[tokio::test]
async fn the_mode_says_what_becomes_of_a_snooze() {
    let stage = Stage::new("snooze").await;
    for (mode, wanted) in MODES.into_iter().zip(["scheduled", "archived", "gone"]) {
        let (state, _) = cancelled(&stage, mode, 25, |call| call.snooze(HOUR)).await;
        assert_eq!(state, wanted, "{mode:?}");
    }
}

#[tokio::test]
async fn the_mode_says_what_becomes_of_a_last_try() {
    let stage = Stage::new("last").await;
    for mode in MODES {
        let (state, record) = cancelled(&stage, mode, 0, |call| call.fail("failed")).await;
        let reason = record.get("reason").map(String::as_str);
        let wanted = match mode {
            CancelMode::Archive => ("archived", Some("cancelled")),
            CancelMode::Delete => ("gone", None),
            _ => ("archived", Some("retries_exhausted")),
        };
        assert_eq!((state, reason), wanted, "{mode:?}");
    }
}

#[tokio::test]
async fn the_mode_says_what_becomes_of_a_task_whose_handler_ignores_it() {
    let stage = Stage::new("ignores").await;
    for mode in MODES {
        let keep = std::cell::RefCell::new(None);
        let ignore = |call| drop(keep.replace(Some(call)));
        let (state, record) = cancelled(&stage, mode, 25, ignore).await;
        let error = record.get("last_error").map(String::as_str);
        let asked_for = Some("cancelled: it was asked for");
        let wanted = match mode {
            CancelMode::Archive => ("archived", asked_for),
            CancelMode::Delete => ("gone", None),
            _ => ("retry", asked_for),
        };
        assert_eq!((state, error), wanted, "{mode:?}");
    }
}

#[tokio::test]
async fn the_mode_says_what_becomes_of_a_task_that_is_handed_back() {
    for (mode, wanted) in MODES.into_iter().zip(["pending", "archived", "gone"]) {
        let stage = Stage::new("handed-back").await;
        let client = stage.client().await;
        let (router, mut calls) = puppet();
        // The cancel does not come to its end before that of the server.
        let settings = stage.server().shutdown_grace(Duration::ZERO);
        let settings = settings.heartbeat(Duration::from_secs(10));
        let settings = settings.cancel_grace(Duration::from_secs(2));
        let server = stage.serve_with(settings, router).await;
        client.enqueue(task("x")).id("it").await.unwrap();
        let call = calls.next().await;
        server.handle.stop();
        assert_eq!(
            call.cancelled().await,
            windlass::handler::CancelReason::Shutdown
        );
        let inspector = stage.inspector().await;
        inspector.cancel("default", "it", mode).await.unwrap();
        call.fail("the server stops");
        server.stop().await;
        assert_eq!(stage.state("it").await, wanted, "{mode:?}");
        let record = stage.record("it").await;
        assert!(!record.contains_key("cancel"));
        let started = record.contains_key("started_at");
        assert!(started || wanted == "gone", "its handler was called");
        stage.audit().await;
    }
}

#[tokio::test]
async fn the_mode_says_what_becomes_of_a_task_whose_server_dies() {
    let stage = Stage::new("dies").await;
    let client = stage.client().await;
    let (server, mut calls) = stage.serve_puppet().await;
    for (mode, wanted) in [
        ("archive", "archived"),
        ("delete", "gone"),
        ("decide", "active"),
    ] {
        for lost in [0, 2] {
            let enqueue = client.enqueue(task("x")).id(mode).delay(HOUR);
            enqueue.await.unwrap();
            // Asked for while it ran, and not heard by anybody.
            let record = stage.record_key(mode);
            let fields = [
                ("cancel", mode),
                ("lost", if lost == 0 { "0" } else { "2" }),
            ];
            let _: () = stage.redis().hset_multiple(record, &fields).await.unwrap();
            stage.lose(mode).await;
            let wanted = if (mode, lost) == ("decide", 2) {
                "archived"
            } else {
                wanted
            };
            if wanted == "active" {
                let call = calls.next().await;
                assert!(!stage.record(mode).await.contains_key("cancel"));
                call.complete();
                stage.wait_for_state(mode, "gone").await;
            }
            let wanted = if wanted == "active" { "gone" } else { wanted };
            let record = stage.wait_for_state(mode, wanted).await;
            assert!(!record.contains_key("cancel"));
            if mode == "archive" {
                assert_eq!(record["reason"], "cancelled");
            }
            let inspector = stage.inspector().await;
            inspector.delete("default", mode).await.unwrap();
        }
    }
    server.stop().await;
    stage.audit().await;
}

#[tokio::test]
async fn a_weaker_cancel_does_not_undo_a_stronger_one() {
    let stage = Stage::new("weaker").await;
    let client = stage.client().await;
    let inspector = stage.inspector().await;
    let (server, mut calls) = stage.serve_puppet().await;
    let wishes = ["decide", "archive", "operator", "delete"];
    let ends = ["retry", "archived", "archived", "gone"];
    for (first, second) in (0..4).flat_map(|first| (0..4).map(move |second| (first, second))) {
        let id = format!("{} {}", wishes[first], wishes[second]);
        client.enqueue(task("x")).id(&id).await.unwrap();
        let call = calls.next().await;
        for wish in [first, second] {
            let answer = match wishes[wish] {
                "decide" => inspector.cancel("default", &id, CancelMode::Decide).await,
                "archive" => inspector.cancel("default", &id, CancelMode::Archive).await,
                "operator" => inspector.archive("default", &id).await,
                _ => inspector.delete("default", &id).await,
            };
            let answer = answer.unwrap();
            assert!(
                matches!(answer, ChangeOutcome::Requested { .. }),
                "{answer:?}"
            );
        }
        call.cancelled().await;
        call.retry_after(HOUR);
        let record = stage.wait_for_state(&id, ends[first.max(second)]).await;
        if let Some(reason) = record.get("reason") {
            // An operator's archive and a cancel to it are as strong as each other.
            let said_first = [first, second]
                .into_iter()
                .find(|&wish| ends[wish] == "archived");
            let said_first = wishes[said_first.expect("one of them archives")];
            let reasons = [("archive", "cancelled"), ("operator", "operator")];
            assert!(reasons.contains(&(said_first, &**reason)), "{id}: {reason}");
        }
    }
    server.stop().await;
    stage.audit().await;
}

#[tokio::test]
async fn a_delete_is_not_undone_by_a_cancel_that_takes_the_task_from_a_dead_server() {
    let stage = Stage::new("taken-over").await;
    let client = stage.client().await;
    let inspector = stage.inspector().await;
    let (server, mut calls) = stage.serve_puppet().await;
    client.enqueue(task("x")).id("it").await.unwrap();
    let call = calls.next().await;
    let mode = CancelMode::Delete;
    inspector.cancel("default", "it", mode).await.unwrap();
    let key = format!("{}:server:{}", stage.prefix, call.context.server_id());
    eventually("it is taken over", LIMIT, async || {
        // Its server shows itself again at each heartbeat.
        let _: () = stage.redis().del(&key).await.unwrap();
        let mode = CancelMode::Archive;
        let answer = inspector.cancel("default", "it", mode).await.unwrap();
        (answer == ChangeOutcome::Done).then_some(())
    })
    .await;
    assert_eq!(stage.state("it").await, "gone");
    drop(call);
    server.stop().await;
    stage.audit().await;
}
