//! Spans of nothing and of half a second work wherever a span can be given.

use std::time::Duration;

use windlass::client::EnqueueError;
use windlass::task::RetryPolicy;
use windlass::{Router, TaskError, Unique};

use crate::support::{HOUR, Stage, ms, puppet, task};

const SPANS: [Duration; 2] = [Duration::ZERO, ms_const(500)];

const fn ms_const(n: u64) -> Duration {
    Duration::from_millis(n)
}

#[tokio::test]
async fn options_of_a_task_take_short_spans() {
    let stage = Stage::new("task").await;
    let client = stage.client().await;
    let (server, mut calls) = stage.serve_puppet().await;
    for span in SPANS {
        let unique = Unique::replace().key("key").at_most(span.max(ms(1)));
        let enqueue = client.enqueue(task("x")).delay(span).retention(span);
        let enqueue = enqueue.retry_policy(RetryPolicy::exponential(span, 2.0).cap(span).jitter(0));
        let before = stage.now().await;
        let id = enqueue.unique(unique.max_wait(span)).await.unwrap().id;
        let call = calls.next().await;
        let waited = stage.now().await - before;
        assert!(u128::from(waited) >= span.as_millis(), "{waited}");

        let failed = stage.now().await;
        call.fail("once");
        let call = calls.next().await;
        let waited = stage.now().await - failed;
        assert!(u128::from(waited) >= span.as_millis(), "{waited}");
        let snoozed = stage.now().await;
        call.snooze(span);
        let call = calls.next().await;
        let waited = stage.now().await - snoozed;
        assert!(u128::from(waited) >= span.as_millis(), "{waited}");
        call.retry_after(span);
        calls.next().await.complete();
        stage.wait_for_state(&id, "gone").await;
    }
    server.stop().await;
    stage.audit().await;
}

#[tokio::test]
async fn a_timeout_takes_half_a_second_and_refuses_none() {
    let stage = Stage::new("timeout").await;
    let client = stage.client().await;
    let refused = client.enqueue(task("x")).timeout(Duration::ZERO).await;
    assert!(matches!(refused, Err(EnqueueError::Invalid(_))));
    let (server, mut calls) = stage.serve_puppet().await;
    let enqueue = client.enqueue(task("x")).timeout(ms(500));
    enqueue
        .retry_policy(RetryPolicy::fixed(HOUR))
        .await
        .unwrap();
    let call = calls.next().await;
    assert_eq!(
        call.cancelled().await,
        windlass::handler::CancelReason::Timeout
    );
    call.complete();
    assert_eq!(server.stop().await.stats.completed, 1);
}

#[tokio::test]
async fn settings_of_a_server_take_short_spans() {
    let stage = Stage::new("server").await;
    let client = stage.client().await;
    for span in SPANS {
        let (router, mut calls) = puppet();
        let some = span.max(ms(1));
        let settings = stage.server().clock_skew(span).shutdown_grace(span);
        let settings = settings.cancel_grace(span).scan_interval(some);
        let settings = settings.sweep_interval(some).archive_limits(10, span);
        let settings = settings.heartbeat(some).retry_delay(move |_| span);
        let server = stage.serve_with(settings, router).await;
        let held = client.enqueue(task("x")).await.unwrap().id;
        let call = calls.next().await;
        call.fail("plainly");
        let call = calls.next().await;
        assert_eq!(call.context.attempt(), 2);
        let archived = client.enqueue(task("y")).await.unwrap().id;
        let other = calls.next().await;
        other.skip();
        stage.wait_for_state(&archived, "gone").await;
        // Twice, where a claim that was already on its way took it once more.
        let released = server.stop().await.stats.released;
        assert!((1..=2).contains(&released), "{released}");
        assert_eq!(stage.state(&held).await, "pending");
        stage
            .inspector()
            .await
            .delete("default", &held)
            .await
            .unwrap();
        drop(call);
    }
    stage.audit().await;
}

#[tokio::test]
async fn settings_that_need_a_span_refuse_none() {
    let stage = Stage::new("refused").await;
    let router = || {
        Router::new().raw("kind", async |_: windlass::task::RawTask| {
            Ok::<_, TaskError>(())
        })
    };
    let zero = Duration::ZERO;
    for settings in [
        stage.server().heartbeat(zero),
        stage.server().scan_interval(zero),
        stage.server().sweep_interval(zero),
        stage.server().lease(ms(999)),
        stage.server().redis(stage.config().connect_timeout(zero)),
        stage.server().redis(stage.config().command_timeout(zero)),
    ] {
        let shown = format!("{settings:?}");
        assert!(settings.build(router()).await.is_err(), "{shown}");
    }
    let shortest = stage
        .server()
        .lease(Duration::from_secs(1))
        .heartbeat(ms(333));
    assert!(shortest.build(router()).await.is_ok());
}
