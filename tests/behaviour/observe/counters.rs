//! What the queue counts, in all and by day.

use std::collections::BTreeMap;
use std::time::{Duration, UNIX_EPOCH};

use redis::AsyncCommands;
use windlass::Unique;
use windlass::inspector::CancelMode;
use windlass::server::{LostLeases, UnknownKind};
use windlass::task::RawTask;

use crate::support::{Call, HOUR, LIMIT, Stage, eventually, ms, puppet, task};

type Counts = BTreeMap<String, u64>;

async fn counts(stage: &Stage, name: &str) -> Counts {
    stage.redis().hgetall(stage.key(name)).await.unwrap()
}

/// Waits until the totals are these and no others; checks that the days have them, too.
async fn assert_counts(stage: &Stage, wanted: &[(&str, u64)]) {
    let wanted: Counts = wanted.iter().map(|(k, n)| ((*k).to_owned(), *n)).collect();
    eventually(&format!("totals are {wanted:?}"), LIMIT, async || {
        let now = counts(stage, "stats").await;
        if now == wanted { Ok(()) } else { Err(now) }
    })
    .await;
    let ttl: i64 = stage.redis().ttl(stage.key("stats")).await.unwrap();
    assert_eq!(ttl, -1, "totals stay");
    let days = stage.keys("stats:").await;
    // Two where midnight came in between.
    assert!((1..=2).contains(&days.len()), "{days:?}");
    let mut by_day = Counts::new();
    for key in &days {
        let ttl: i64 = stage.redis().ttl(key).await.unwrap();
        let ninety_days = 90 * 24 * 3600;
        assert!((ninety_days - 3600..=ninety_days).contains(&ttl), "{ttl}");
        let day: Counts = stage.redis().hgetall(key).await.unwrap();
        for (name, count) in day {
            *by_day.entry(name).or_default() += count;
        }
    }
    by_day.retain(|_, count| *count != 0);
    assert_eq!(by_day, wanted);
}

#[tokio::test]
async fn enqueued_and_duplicates() {
    let stage = Stage::new("enqueued").await;
    let client = stage.client().await;
    let unique = || Unique::until_done().key("key");
    client
        .enqueue(task("x"))
        .id("1")
        .unique(unique())
        .await
        .unwrap();
    client.enqueue(task("x")).id("1").await.unwrap();
    client.enqueue(task("x")).unique(unique()).await.unwrap();
    let many = [
        task("x").id("2"),
        task("x").id("1"),
        task("x").unique(unique()),
    ];
    client.enqueue_many(many).await;
    let debounced = || client.enqueue(task("x")).unique(Unique::replace().key("d"));
    debounced().await.unwrap();
    debounced().await.unwrap();
    let wanted = [("enqueued", 3), ("duplicates", 4), ("replaced", 1)];
    assert_counts(&stage, &wanted).await;
}

#[tokio::test]
async fn processed_failed_retried_and_deferred() {
    let stage = Stage::new("processed").await;
    let client = stage.client().await;
    let (server, mut calls) = stage.serve_puppet().await;
    client.enqueue(task("x")).await.unwrap();
    calls.next().await.snooze(ms(1));
    calls.next().await.snooze(ms(1));
    calls.next().await.retry_after(Duration::ZERO);
    calls.next().await.retry_after(ms(1));
    calls.next().await.retry_after(ms(1));
    calls.next().await.complete();
    let wanted = [
        ("enqueued", 1),
        ("processed", 4),
        ("failed", 3),
        ("retried", 3),
        ("deferred", 2),
    ];
    assert_counts(&stage, &wanted).await;
    server.stop().await;
}

#[tokio::test]
async fn an_error_that_is_no_failure_is_retried_and_not_failed() {
    let stage = Stage::new("no-failure").await;
    let client = stage.client().await;
    let (router, mut calls) = puppet();
    let settings = stage.server().is_failure(|_| false);
    let server = stage.serve_with(settings, router).await;
    client.enqueue(task("x")).await.unwrap();
    calls.next().await.retry_after(Duration::ZERO);
    calls.next().await.complete();
    let wanted = [("enqueued", 1), ("processed", 1), ("retried", 1)];
    assert_counts(&stage, &wanted).await;
    server.stop().await;
}

#[tokio::test]
async fn recovered() {
    for (policy, failed) in [(LostLeases::CountAsFailure, 1), (LostLeases::Redeliver, 0)] {
        let stage = Stage::new("recovered").await;
        let (router, mut calls) = puppet();
        let settings = stage.server().lost_leases(policy);
        let server = stage.serve_with(settings, router).await;
        stage.enqueue_for_later("it").await;
        stage.lose("it").await;
        calls.next().await.complete();
        let mut wanted = vec![("enqueued", 1), ("recovered", 1), ("retried", 1)];
        wanted.push(("processed", failed + 1));
        if failed > 0 {
            wanted.push(("failed", failed));
        }
        assert_counts(&stage, &wanted).await;
        server.stop().await;
    }
}

#[tokio::test]
async fn archived_by_reason_and_expired() {
    let stage = Stage::new("archived").await;
    let client = stage.client().await;
    let inspector = stage.inspector().await;
    let (router, mut calls) = puppet();
    let settings = stage.server().unknown_kind(UnknownKind::Archive);
    let server = stage.serve_with(settings, router).await;
    client.enqueue(task("x")).await.unwrap();
    calls.next().await.skip();
    client.enqueue(task("x")).max_retry(0).await.unwrap();
    calls.next().await.fail("the only try");
    client
        .enqueue(task("x"))
        .deadline(UNIX_EPOCH)
        .await
        .unwrap();
    client
        .enqueue(task("x"))
        .start_before(UNIX_EPOCH)
        .await
        .unwrap();
    client.enqueue(RawTask::new("other", "x")).await.unwrap();
    for id in ["operator", "cancelled", "deleted", "lost"] {
        stage.enqueue_for_later(id).await;
    }
    inspector.archive("default", "operator").await.unwrap();
    inspector
        .cancel("default", "cancelled", CancelMode::Decide)
        .await
        .unwrap();
    inspector.delete("default", "deleted").await.unwrap();
    stage.set("lost", "lost", 2).await;
    stage.lose("lost").await;
    let wanted = [
        ("enqueued", 9),
        ("processed", 4),
        ("failed", 4),
        ("recovered", 1),
        ("expired", 2),
        ("deleted", 1),
        ("archived", 8),
        ("archived_skipped", 1),
        ("archived_retries_exhausted", 1),
        ("archived_deadline_passed", 2),
        ("archived_unknown_kind", 1),
        ("archived_operator", 1),
        ("archived_cancelled", 1),
        ("archived_lease_expired", 1),
    ];
    assert_counts(&stage, &wanted).await;
    server.stop().await;
}

#[tokio::test]
async fn stale_and_released() {
    let stage = Stage::new("stale").await;
    let client = stage.client().await;
    let (router, mut calls) = puppet();
    let settings = stage.server().heartbeat(Duration::from_secs(10));
    let settings = settings.shutdown_grace(ms(500)).cancel_grace(ms(10));
    let server = stage.serve_with(settings, router).await;
    let ends: [fn(Call); 3] = [
        |call| call.complete(),
        |call| call.skip(),
        |call| call.snooze(HOUR),
    ];
    for end in ends {
        let id = client.enqueue(task("x")).await.unwrap().id;
        let call = calls.next().await;
        // Somebody else's now, and alive.
        stage.give_away(&id).await;
        end(call);
    }
    client.enqueue(task("x")).await.unwrap();
    let _call = calls.next().await;
    assert_eq!(server.stop().await.stats.settles_refused, 3);
    let wanted = [("enqueued", 4), ("stale", 3), ("released", 1)];
    assert_counts(&stage, &wanted).await;
}

#[tokio::test]
async fn hooks_run_and_dropped() {
    let stage = Stage::new("hooks").await;
    let client = stage.client().await;
    let (router, mut calls) = puppet();
    let hook = async |_: windlass::handler::DeadLetter| Ok::<_, String>(());
    let server = stage.serve(router.on_dead_letter("kind", hook)).await;
    client.enqueue(task("x")).id("1").await.unwrap();
    calls.next().await.skip();
    stage.wait_for_count("archived", 1).await;
    stage.wait_for_count("hooks", 0).await;
    // Dead for longer than it is kept for its hook.
    stage.place("archived", "1", 1).await;
    stage.place("hooks", "1", 1).await;
    stage.wait_for_count("hooks", 0).await;
    let mut wanted = vec![
        ("enqueued", 1),
        ("processed", 1),
        ("failed", 1),
        ("archived", 1),
        ("archived_skipped", 1),
        ("hooks_run", 1),
        ("hooks_dropped", 1),
    ];
    // It is also too old for the archive.
    stage.wait_for_count("archived", 0).await;
    wanted.push(("swept_archived", 1));
    assert_counts(&stage, &wanted).await;
    server.stop().await;
}

#[tokio::test]
async fn a_counter_at_its_end_stops_nothing() {
    let stage = Stage::new("full").await;
    let client = stage.client().await;
    let inspector = stage.inspector().await;
    stage.enqueue_for_later("first").await;
    let mut pipeline = redis::pipe();
    let keys = stage.keys("stats").await;
    for key in &keys {
        for counter in [
            "enqueued",
            "duplicates",
            "processed",
            "failed",
            "retried",
            "recovered",
            "archived",
            "archived_skipped",
            "archived_operator",
            "expired",
            "deferred",
            "released",
            "stale",
            "hooks_run",
            "swept_archived",
            "swept_completed",
            "deleted",
        ] {
            pipeline.hset(key, counter, i64::MAX);
        }
    }
    let _: () = pipeline.query_async(&mut stage.redis()).await.unwrap();

    let (router, mut calls) = puppet();
    let hook = async |_: windlass::handler::DeadLetter| Ok::<_, String>(());
    let settings = stage.server().archive_limits(1, HOUR);
    let server = stage
        .serve_with(settings, router.on_dead_letter("kind", hook))
        .await;
    client.enqueue(task("x")).id("first").await.unwrap();
    client
        .enqueue(task("x"))
        .id("it")
        .retention(ms(500))
        .await
        .unwrap();
    calls.next().await.snooze(Duration::ZERO);
    calls.next().await.retry_after(ms(1));
    let call = calls.next().await;
    stage.lose("it").await;
    call.cancelled().await;
    drop(call);
    calls.next().await.complete();
    stage.wait_for_state("it", "gone").await;
    for id in ["skipped", "skipped too"] {
        client.enqueue(task("x")).id(id).await.unwrap();
        calls.next().await.skip();
        stage.wait_for_state(id, "archived").await;
    }
    stage.wait_for_state("skipped", "gone").await;
    stage.wait_for_count("hooks", 0).await;
    inspector.delete("default", "skipped too").await.unwrap();
    inspector.archive("default", "first").await.unwrap();
    server.stop().await;
    for key in &keys {
        for counter in [
            "enqueued",
            "processed",
            "failed",
            "archived",
            "hooks_run",
            "deleted",
        ] {
            let count: i64 = stage.redis().hget(key, counter).await.unwrap();
            assert_eq!(count, i64::MAX, "{key} {counter}");
        }
    }
    stage.audit().await;
}

/// The UTC date of a time in ms, by going through the years and months.
fn date(ms: u64) -> String {
    let mut days = ms / 86_400_000;
    let leap = |year: u64| {
        year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400))
    };
    let mut year = 1970;
    while days >= 365 + u64::from(leap(year)) {
        days -= 365 + u64::from(leap(year));
        year += 1;
    }
    let february = 28 + u64::from(leap(year));
    let months = [31, february, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
    let mut month = 0;
    while days >= months[month] {
        days -= months[month];
        month += 1;
    }
    format!("{year:04}-{:02}-{:02}", month + 1, days + 1)
}

#[tokio::test]
async fn a_day_is_named_by_its_date_in_utc() {
    let stage = Stage::new("day").await;
    let before = stage.now().await;
    stage.client().await.enqueue(task("x")).await.unwrap();
    let after = stage.now().await;
    let days = stage.keys("stats:").await;
    let dates = [before, after].map(|time| stage.key(&format!("stats:{}", date(time))));
    assert_eq!(days.len(), 1);
    assert!(dates.contains(&days[0]), "{days:?} {dates:?}");
    assert_eq!(date(951_782_400_000), "2000-02-29");
    assert_eq!(date(1_798_761_599_999), "2026-12-31");
}
