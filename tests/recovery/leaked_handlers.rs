//! Handlers that go on after their timeout.

use std::sync::Mutex;
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

use windlass::NewTask;
use windlass::server::HealthProblem;

use crate::fixture::{Act, Block, Settings, What};
use crate::support::{LIMIT, Stage, eventually, ms};

/// The next try comes late enough to see what became of the first.
fn settings() -> Settings {
    Settings {
        concurrency: 2,
        cancel_grace: ms(300),
        retry_delay: Duration::from_secs(600),
        ..Settings::default()
    }
}

const TIMEOUT: Duration = Duration::from_secs(1);

#[tokio::test]
async fn a_blocking_handler_that_never_returns_is_given_up_and_counted() {
    let stage = Stage::new("leak").await;
    let props = stage.props();
    let (leaked_in, leaked) = channel();
    let leaked_in = Mutex::new(leaked_in);
    let builder = settings().builder(&stage).on_event(move |event| {
        if let windlass::server::Event::HandlerLeaked { task, .. } = event {
            leaked_in
                .lock()
                .unwrap()
                .send(format!("{} {}", task.kind, task.id))
                .unwrap();
        }
    });
    let server = stage.serve_with(builder, props.router()).await;
    let id = stage.enqueue(NewTask::from(Block).timeout(TIMEOUT)).await;

    stage.wait_for_state(&id, "retry").await;
    assert_eq!(stage.field(&id, "retried").await.as_deref(), Some("1"));
    let error = stage.field(&id, "last_error").await.unwrap();
    assert!(error.contains("1s"), "names the timeout: {error}");
    assert_eq!(server.handle.stats().leaked, 1);
    assert_eq!(server.handle.stats().retried, 1);
    let problems = server.handle.health().problems;
    assert_eq!(problems, [HealthProblem::LeakedHandlers(1)]);
    assert_eq!(leaked.recv_timeout(LIMIT).unwrap(), format!("block {id}"));

    // Its slot stays taken: of two, one is left.
    let others = stage.enqueue_many([Act::Wait; 2]).await;
    let started = props.journal.wait_for(What::Started, 2, LIMIT).await;
    assert_eq!(started[1].id, others[0]);
    assert_eq!(stage.state(&others[1]).await, "pending");

    // Its late result is dropped, and its slot is free again.
    props.gate.open();
    eventually("the handler returns", LIMIT, async || {
        let stats = server.handle.stats();
        (stats.leaked == 0 && stats.completed == 2)
            .then_some(())
            .ok_or(stats)
    })
    .await;
    assert!(
        server.handle.health().is_healthy(),
        "{:?}",
        server.handle.health()
    );
    assert!(props.journal.ids(What::Ended).contains(&id));
    let stats = server.stop().await.stats;
    assert_eq!(
        (stats.completed, stats.settles_refused),
        (2, 0),
        "{stats:?}"
    );
    assert_eq!(stage.state(&id).await, "retry");
    assert!(leaked.try_recv().is_err(), "reported once");
}

#[tokio::test]
async fn an_async_handler_that_ignores_its_timeout_is_dropped_after_the_cancel_grace() {
    let stage = Stage::new("dropped-handler").await;
    let props = stage.props();
    let server = props.serve(settings()).await;
    let deaf = NewTask::from(Act::Sleep(60_000)).timeout(TIMEOUT);
    let id = stage.enqueue(deaf).await;
    let started: Instant = props.journal.wait_for(What::Started, 1, LIMIT).await[0].at;
    let dropped = props.journal.wait_for(What::Dropped, 1, LIMIT).await[0].at;
    let ran_for = dropped - started;
    let due = TIMEOUT + settings().cancel_grace;
    assert!(ran_for > due - ms(50), "{ran_for:?}: before its time");
    assert!(
        ran_for < due + Duration::from_secs(2),
        "{ran_for:?}: too late"
    );
    let cancelled = props
        .journal
        .of(What::Cancelled(windlass::handler::CancelReason::Timeout));
    assert_eq!(cancelled.len(), 1, "it was told first");

    stage.wait_for_state(&id, "retry").await;
    let stats = server.stop().await.stats;
    assert_eq!((stats.retried, stats.leaked), (1, 0), "{stats:?}");
}

#[tokio::test]
async fn the_report_of_a_shutdown_names_a_handler_that_was_given_up_before() {
    let stage = Stage::new("leak-report").await;
    let props = stage.props();
    let server = props.serve(settings()).await;
    let id = stage.enqueue(NewTask::from(Block).timeout(ms(300))).await;
    stage.wait_for_state(&id, "retry").await;
    let report = server.stop().await;
    let [still] = &report.still_running[..] else {
        panic!("one handler still runs: {report:?}");
    };
    assert_eq!((&still.id, &*still.kind), (&id, "block"));
    assert!(still.running_for >= ms(600), "{still:?}");
    assert_eq!(
        (report.stats.leaked, report.unsettled),
        (1, 0),
        "{report:?}"
    );
    props.gate.open();
}
