//! A task's own retry policy, and what goes before it.

use std::time::Duration;

use windlass::TaskError;
use windlass::client::EnqueueError;
use windlass::server::ServerBuilder;
use windlass::task::RetryPolicy;

use crate::support::{HOUR, Stage, puppet, task};

/// How long a task that failed is to wait, in seconds. What is left of a millisecond is rounded up.
async fn delay_of(stage: &Stage, id: &str) -> u64 {
    let record = stage.wait_for_state(id, "retry").await;
    let failed: u64 = record["last_failed_at"].parse().unwrap();
    let due = stage.score("retry", id).await.unwrap();
    let exact = (due - failed - 1).next_multiple_of(1000);
    assert!(
        (exact..=exact + 1).contains(&(due - failed)),
        "{failed} {due}"
    );
    exact / 1000
}

/// How long a task waits after each of its failures, in seconds.
async fn delays(
    stage: &Stage,
    server: ServerBuilder,
    policy: RetryPolicy,
    tries: usize,
) -> Vec<u64> {
    let client = stage.client().await;
    let (router, mut calls) = puppet();
    let server = stage.serve_with(server, router).await;
    let enqueued = client.enqueue(task("x")).retry_policy(policy).await;
    let id = enqueued.unwrap().id;
    let inspector = stage.inspector().await;
    let mut delays = Vec::new();
    for _ in 0..tries {
        calls.next().await.fail("again");
        delays.push(delay_of(stage, &id).await);
        inspector.run("default", &id).await.unwrap();
    }
    calls.next().await.complete();
    server.stop().await;
    stage.audit().await;
    delays
}

#[tokio::test]
async fn a_fixed_delay_is_kept_after_each_failure() {
    let stage = Stage::new("fixed").await;
    let policy = RetryPolicy::fixed(Duration::from_secs(7_000)).jitter(0);
    let seen = delays(&stage, stage.server(), policy, 3).await;
    assert_eq!(seen, [7_000; 3]);
}

#[tokio::test]
async fn a_list_is_gone_through_and_its_last_delay_repeated() {
    let stage = Stage::new("list").await;
    let policy = RetryPolicy::list([3_000, 2_000, 1_000].map(Duration::from_secs)).jitter(0);
    let seen = delays(&stage, stage.server(), policy, 4).await;
    assert_eq!(seen, [3_000, 2_000, 1_000, 1_000]);
}

#[tokio::test]
async fn an_exponential_delay_grows_up_to_its_cap() {
    let stage = Stage::new("exponential").await;
    let policy = RetryPolicy::exponential(Duration::from_secs(1_000), 1.5);
    let policy = policy.cap(Duration::from_secs(2_000)).jitter(0);
    let seen = delays(&stage, stage.server(), policy, 4).await;
    assert_eq!(seen, [1_000, 1_500, 2_000, 2_000]);
}

#[tokio::test]
async fn the_tasks_policy_goes_before_the_servers_function() {
    let stage = Stage::new("before-server").await;
    let server = stage.server().retry_delay(|_| Duration::from_secs(5_000));
    let seen = delays(&stage, server, RetryPolicy::fixed(HOUR).jitter(0), 1).await;
    assert_eq!(seen, [3_600]);
}

#[tokio::test]
async fn a_handlers_own_delay_goes_before_the_tasks_policy() {
    let stage = Stage::new("before-task").await;
    let client = stage.client().await;
    let (router, mut calls) = puppet();
    let settings = stage.server().retry_delay(|_| HOUR);
    let server = stage.serve_with(settings, router).await;
    let enqueue = client.enqueue(task("x")).id("own");
    enqueue
        .retry_policy(RetryPolicy::fixed(HOUR).jitter(0))
        .await
        .unwrap();
    let delay = Duration::from_secs(5_000);
    let call = calls.next().await;
    call.fail(TaskError::retry_after("later", delay));
    assert_eq!(delay_of(&stage, "own").await, 5000);

    // Without one of its own, the server's function says.
    client.enqueue(task("x")).id("none").await.unwrap();
    calls.next().await.fail("plainly");
    assert_eq!(delay_of(&stage, "none").await, 3600);
    server.stop().await;
}

#[tokio::test]
async fn a_policy_is_kept_by_a_server_that_did_not_enqueue_and_by_recoveries() {
    let stage = Stage::new("recovered").await;
    let client = stage.client().await;
    let (server, mut calls) = stage.serve_puppet().await;
    let enqueue = client.enqueue(task("x")).id("lost").delay(HOUR);
    enqueue
        .retry_policy(RetryPolicy::fixed(HOUR).jitter(0))
        .await
        .unwrap();
    // The first lost lease in a row is repeated at once, the second one after the policy's delay.
    stage.lose("lost").await;
    let call = calls.next().await;
    call.snooze(HOUR);
    stage.wait_for_state("lost", "scheduled").await;
    stage.set("lost", "lost", 1).await;
    stage.lose("lost").await;
    assert_eq!(delay_of(&stage, "lost").await, 3600);
    let record = stage.record("lost").await;
    assert_eq!((&*record["retried"], &*record["lost"]), ("2", "2"));
    server.stop().await;
}

#[tokio::test]
async fn the_last_retry_ends_in_the_archive_whatever_the_policy() {
    let stage = Stage::new("exhausted").await;
    let client = stage.client().await;
    let (server, mut calls) = stage.serve_puppet().await;
    let enqueue = client.enqueue(task("x")).max_retry(2);
    let policy = RetryPolicy::fixed(Duration::ZERO);
    let id = enqueue.retry_policy(policy).await.unwrap().id;
    for attempt in 1..=3 {
        let call = calls.next().await;
        assert_eq!(call.context.attempt(), attempt);
        assert_eq!(call.context.is_final_attempt(), attempt == 3);
        call.fail("again");
    }
    assert_eq!(stage.wait_for_reason(&id).await, "retries_exhausted");
    server.stop().await;
}

#[tokio::test]
async fn a_policy_that_makes_no_sense_is_refused() {
    let stage = Stage::new("refused").await;
    let client = stage.client().await;
    for policy in [
        RetryPolicy::list([]),
        RetryPolicy::list([HOUR; 101]),
        RetryPolicy::exponential(HOUR, 0.5),
        RetryPolicy::exponential(HOUR, f64::NAN),
        RetryPolicy::fixed(HOUR).jitter(1.5),
        RetryPolicy::fixed(HOUR).jitter(-0.1),
    ] {
        let shown = format!("{policy:?}");
        let refused = client.enqueue(task("x")).retry_policy(policy).await;
        assert!(matches!(refused, Err(EnqueueError::Invalid(_))), "{shown}");
    }
    assert_eq!(stage.keys("").await, [""; 0]);
}

#[tokio::test]
async fn extreme_delays_stop_nothing() {
    let stage = Stage::new("extreme").await;
    let client = stage.client().await;
    let (router, mut calls) = puppet();
    let settings = stage.server().retry_delay(|_| Duration::MAX);
    let server = stage.serve_with(settings, router).await;
    let far = Duration::MAX;
    for (id, policy) in [
        ("fixed", RetryPolicy::fixed(far)),
        ("steep", RetryPolicy::exponential(far, 1e6).jitter(1.0)),
        ("list", RetryPolicy::list([far])),
    ] {
        let enqueue = client.enqueue(task("x")).id(id).retry_policy(policy);
        enqueue.await.unwrap();
        calls.next().await.fail("plainly");
        stage.wait_for_state(id, "retry").await;
    }
    let uncapped = client
        .enqueue(task("x"))
        .retry_policy(RetryPolicy::fixed(far).cap(far));
    assert!(matches!(uncapped.await, Err(EnqueueError::Invalid(_))));

    client.enqueue(task("x")).id("server").await.unwrap();
    calls.next().await.fail("plainly");
    stage.wait_for_state("server", "retry").await;
    client.enqueue(task("x")).id("handler").await.unwrap();
    calls.next().await.retry_after(far);
    stage.wait_for_state("handler", "retry").await;
    client.enqueue(task("x")).id("snoozed").await.unwrap();
    calls.next().await.snooze(far);
    stage.wait_for_state("snoozed", "scheduled").await;

    client.enqueue(task("x")).await.unwrap();
    calls.next().await.complete();
    assert_eq!(server.stop().await.stats.completed, 1);
    stage.audit().await;
}
