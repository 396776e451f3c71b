//! What a lost lease costs its task.

use std::time::Duration;

use windlass::handler::CancelReason;
use windlass::server::LeaseExpired;
use windlass::server::{LostLeases, ServerBuilder};

use crate::support::{HOUR, LIMIT, Stage, eventually, ms, puppet, task};

fn settings(server: ServerBuilder, policy: LostLeases) -> ServerBuilder {
    let settings = server.lost_leases(policy).max_lost_leases(3);
    settings.retry_delay(|_| Duration::ZERO)
}

#[tokio::test]
async fn redelivery_spends_no_retry_and_ends_after_the_most_in_a_row() {
    let stage = Stage::new("redeliver").await;
    let client = stage.client().await;
    let (router, mut calls) = puppet();
    let settings = settings(stage.server(), LostLeases::Redeliver);
    let server = stage.serve_with(settings, router).await;
    // A single failure would end it.
    let enqueue = client.enqueue(task("x")).id("it").max_retry(0);
    enqueue.await.unwrap();
    for lost in 1..=2 {
        let call = calls.next().await;
        assert_eq!((call.context.attempt(), call.context.retried()), (1, 0));
        stage.lose("it").await;
        assert_eq!(call.cancelled().await, CancelReason::LeaseLost);
        call.complete();
        let record = stage.record("it").await;
        assert!(!record.contains_key("retried"), "{lost}");
    }
    let call = calls.next().await;
    stage.lose("it").await;
    call.cancelled().await;
    let record = stage.wait_for_state("it", "archived").await;
    assert_eq!(record["reason"], "lease_expired");
    assert_eq!((record.get("retried"), &*record["lost"]), (None, "3"));
    let report = server.stop().await;
    assert_eq!((report.stats.recovered, report.stats.completed), (3, 0));
    for (counter, count) in [
        ("recovered", 3),
        ("retried", 2),
        ("archived_lease_expired", 1),
    ] {
        assert_eq!(stage.total(counter).await, count, "{counter}");
    }
    stage.audit().await;
}

#[tokio::test]
async fn by_default_it_counts_as_a_failed_try() {
    let stage = Stage::new("failure").await;
    let client = stage.client().await;
    let (router, mut calls) = puppet();
    let settings = settings(stage.server(), LostLeases::default());
    let server = stage.serve_with(settings, router).await;
    client
        .enqueue(task("x"))
        .id("it")
        .max_retry(1)
        .await
        .unwrap();
    let call = calls.next().await;
    stage.lose("it").await;
    call.cancelled().await;
    let call = calls.next().await;
    assert_eq!(
        (call.context.attempt(), call.context.is_final_attempt()),
        (2, true)
    );
    stage.lose("it").await;
    call.cancelled().await;
    assert_eq!(stage.wait_for_reason("it").await, "lease_expired");
    server.stop().await;
    stage.audit().await;
}

#[tokio::test]
async fn the_function_for_failures_is_asked_of_a_lost_lease() {
    let stage = Stage::new("asked").await;
    let client = stage.client().await;
    let (router, mut calls) = puppet();
    let settings = settings(stage.server(), LostLeases::CountAsFailure);
    let settings = settings.is_failure(|error| !error.is::<LeaseExpired>());
    let server = stage.serve_with(settings, router).await;
    let enqueue = client.enqueue(task("x")).id("it").max_retry(0);
    enqueue.await.unwrap();
    let call = calls.next().await;
    stage.lose("it").await;
    call.cancelled().await;
    let call = calls.next().await;
    assert_eq!(call.context.retried(), 0);
    call.fail("oh");
    assert_eq!(stage.wait_for_reason("it").await, "retries_exhausted");
    server.stop().await;
}

#[tokio::test]
async fn the_wait_after_a_first_lost_lease_can_be_set() {
    let stage = Stage::new("first-delay").await;
    let client = stage.client().await;
    let (router, mut calls) = puppet();
    let settings = settings(stage.server(), LostLeases::default()).lost_lease_delay(HOUR);
    let server = stage.serve_with(settings, router).await;
    client.enqueue(task("x")).id("it").await.unwrap();
    let call = calls.next().await;
    let before = stage.now().await;
    stage.lose("it").await;
    call.cancelled().await;
    let record = stage.wait_for_state("it", "retry").await;
    assert_eq!(record["lost"], "1");
    let due = stage.score("retry", "it").await.unwrap();
    assert!(u128::from(due - before) >= HOUR.as_millis(), "{due}");
    server.stop().await;
}

#[tokio::test]
async fn a_row_of_lost_leases_ends_with_a_try_that_is_settled() {
    let stage = Stage::new("row").await;
    let client = stage.client().await;
    let (router, mut calls) = puppet();
    let settings = settings(stage.server(), LostLeases::Redeliver);
    let server = stage.serve_with(settings, router).await;
    client.enqueue(task("x")).id("it").await.unwrap();
    for settled in ["snoozed", "failed", "completed"] {
        for lost in ["1", "2"] {
            let call = calls.next().await;
            stage.lose("it").await;
            call.cancelled().await;
            drop(call);
            eventually("it is lost", LIMIT, async || {
                let record = stage.record("it").await;
                (record.get("lost").map(String::as_str) == Some(lost)).then_some(())
            })
            .await;
        }
        let call = calls.next().await;
        match settled {
            "snoozed" => call.snooze(ms(500)),
            "failed" => call.retry_after(ms(500)),
            _ => call.complete(),
        }
        eventually("the row has ended", LIMIT, async || {
            let record = stage.record("it").await;
            (!record.contains_key("lost")).then_some(())
        })
        .await;
    }
    stage.wait_for_state("it", "gone").await;
    assert_eq!(server.stop().await.stats.recovered, 6);
}

#[tokio::test]
async fn being_handed_back_does_not_end_a_row() {
    let stage = Stage::new("handed-back").await;
    stage.enqueue_for_later("it").await;
    let mut lost = 0;
    for round in 0..2 {
        let (router, mut calls) = puppet();
        let settings = settings(stage.hasty_server(), LostLeases::Redeliver);
        let server = stage.serve_with(settings, router).await;
        if round == 0 {
            stage.lose("it").await;
            lost += 1;
        }
        let call = calls.next().await;
        let report = server.stop().await;
        assert_eq!(report.stats.released, 1);
        drop(call);
        assert_eq!(stage.record("it").await["lost"], lost.to_string());
    }
}
