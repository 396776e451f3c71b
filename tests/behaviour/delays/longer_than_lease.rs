//! A delay is no lease.

use std::time::Duration;

use windlass::TaskError;

use crate::support::{Stage, ms, puppet, task};

#[tokio::test]
async fn a_delay_longer_than_the_lease_runs_once() {
    let stage = Stage::new("long-delay").await;
    let client = stage.client().await;
    let (router, mut calls) = puppet();
    let settings = stage.server().lease(ms(1000)).heartbeat(ms(200));
    let server = stage.serve_with(settings, router).await;
    let delay = Duration::from_secs(3);
    let due = stage.now().await + 3_000;
    client.enqueue(task("delayed")).delay(delay).await.unwrap();
    client.enqueue(task("snoozed")).await.unwrap();
    let call = calls.next().await;
    assert_eq!(call.payload(), "snoozed");
    call.fail(TaskError::snooze(delay));
    client.enqueue(task("retried")).await.unwrap();
    calls.next().await.retry_after(delay);

    let mut ran = Vec::new();
    for _ in 0..3 {
        let call = calls.next().await;
        assert!(stage.now().await >= due);
        ran.push(call.payload());
        call.complete();
    }
    ran.sort_unstable();
    assert_eq!(ran, ["delayed", "retried", "snoozed"]);
    // For some more leases nothing comes back.
    let until = stage.now().await + 2_000;
    stage.wait_until(until).await;
    assert!(calls.is_empty());
    let report = server.stop().await;
    assert_eq!((report.stats.completed, report.stats.recovered), (3, 0));
    stage.audit().await;
}
