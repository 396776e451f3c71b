//! Workers that get SIGTERM, and what they hand back.

use std::sync::atomic::{AtomicU32, Ordering};

use redis::AsyncCommands;

use crate::fixture::{Act, Settings, What};
use crate::support::{LIMIT, Stage, eventually, ms};

const SIGTERMS: u32 = 120;

#[tokio::test]
async fn a_handler_longer_than_the_lease_ends_in_peace_after_sigterm() {
    let stage = Stage::new("term-long").await;
    let mut worker = stage.worker(Settings::default()).await;
    // Three leases.
    let id = stage.enqueue(Act::Sleep(3_000)).await;
    worker.wait_for("Started", 1).await;
    let props = stage.props();
    let second = props.serve(Settings::default()).await;
    worker.signal("TERM");
    let lease_before = stage.score("active", &id).await;
    eventually("the lease is renewed after SIGTERM", LIMIT, async || {
        (stage.score("active", &id).await > lease_before).then_some(())
    })
    .await;
    let report = worker.report().await;
    assert_eq!(
        (report["completed"], report["leases_lost"]),
        (1, 0),
        "{report:?}"
    );
    assert_eq!(worker.seen("Ended"), [format!("{id} 1")]);
    stage.wait_until_done(1).await;
    assert_eq!(second.stop().await.stats.claimed, 0);
    assert!(props.journal.entries().is_empty(), "it ran once");
}

#[tokio::test]
async fn tasks_handed_back_go_to_the_front_of_the_queue() {
    let stage = Stage::new("front").await;
    let settings = Settings {
        shutdown_grace: ms(0),
        ..Settings::default()
    };
    let mut worker = stage.worker(settings).await;
    let running = stage.enqueue_many([Act::Wait; 10]).await;
    worker.wait_for("Started", 10).await;
    let waiting = stage.enqueue_many([Act::Wait; 20]).await;
    worker.signal("TERM");
    assert_eq!(worker.report().await["released"], 10);
    let pending: Vec<String> = stage
        .redis()
        .zrange(stage.key("pending"), 0, -1)
        .await
        .unwrap();
    let (front, rest) = pending.split_at(10);
    assert_eq!((front, rest), (&running[..], &waiting[..]));
    // Also what a server claims first.
    let props = stage.props();
    let second = props.serve(settings).await;
    let started = props.journal.wait_for(What::Started, 10, LIMIT).await;
    let mut first: Vec<_> = started[..10].iter().map(|entry| entry.id.clone()).collect();
    first.sort();
    assert_eq!(first, running);
    assert!(
        started.iter().all(|entry| entry.attempt == 1),
        "no retry was spent"
    );
    second.stop().await;
}

/// Starts a worker, lets it work for a random time, ends it with SIGTERM; again and again. Answers
/// how many tasks were handed back.
async fn terminate_again_and_again(stage: &Stage, terms: &AtomicU32) -> u64 {
    let settings = Settings {
        concurrency: 8,
        shutdown_grace: ms(10),
        ..Settings::default()
    };
    let mut released = 0;
    while terms.fetch_add(1, Ordering::Relaxed) < SIGTERMS {
        let mut worker = stage.worker(settings).await;
        // Not a wait for anything: the moment is meant to be random.
        tokio::time::sleep(ms(rand::random_range(0..60))).await;
        worker.signal("TERM");
        let report = worker.report().await;
        assert_eq!(
            report["still_running"] + report["unsettled"],
            0,
            "{report:?}"
        );
        assert_eq!(
            report["leases_lost"] + report["settles_refused"],
            0,
            "{report:?}"
        );
        released += report["released"];
    }
    released
}

#[tokio::test]
async fn nothing_is_lost_and_no_retry_spent_by_many_sigterms() {
    let stage = Stage::new("sigterms").await;
    let tasks = (0..2_000).map(|_| Act::Mark(rand::random_range(0..50)));
    let ids = stage.enqueue_many(tasks).await;
    let terms = AtomicU32::new(0);
    let (a, b, c) = tokio::join!(
        terminate_again_and_again(&stage, &terms),
        terminate_again_and_again(&stage, &terms),
        terminate_again_and_again(&stage, &terms),
    );
    let left = stage.audit().await;
    assert_eq!(left.active, 0, "every lease was ended");
    assert_eq!(
        left.in_all_states(),
        left.enqueued - left.succeeded,
        "{left:?}"
    );
    println!(
        "{SIGTERMS} SIGTERMs: {} tasks handed back, {left:?}",
        a + b + c
    );
    assert!(a + b + c > 0, "too few to tell anything");

    let last = stage.props().serve(Settings::default()).await;
    stage.wait_until_done(ids.len() as u64).await;
    last.stop().await;
    let marks = stage.marks().await;
    assert!(ids.iter().all(|id| marks.contains_key(id)), "each ran");
    for name in ["retried", "failed", "recovered"] {
        assert_eq!(stage.total(name).await, 0, "{name}");
    }
}
