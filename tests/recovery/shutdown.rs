//! What a server that stops does with handlers that take longer than its grace.

use std::time::Duration;

use windlass::NewTask;
use windlass::handler::CancelReason;

use crate::fixture::{Act, Block, Settings, What};
use crate::support::{LIMIT, Stage, ms};

const CANCELLED: What = What::Cancelled(CancelReason::Shutdown);

fn settings() -> Settings {
    Settings {
        shutdown_grace: Duration::from_secs(1),
        cancel_grace: Duration::from_secs(1),
        ..Settings::default()
    }
}

/// `long` runs for 60 s or until it is cancelled, on a server that stops, and then elsewhere.
async fn is_handed_over(name: &str, long: Act, ends: What) {
    let stage = Stage::new(name).await;
    let props = stage.props();
    let first = props.serve(settings()).await;
    let id = stage.enqueue(long).await;
    let started = props.journal.wait_for(What::Started, 1, LIMIT).await[0].at;
    let elsewhere = stage.props();
    let second = elsewhere.hold(settings()).await;

    let report = first.stop().await;
    assert_eq!(report.stats.released, 1, "{report:?}");
    assert!(report.still_running.is_empty(), "{report:?}");
    let cancelled = props.journal.of(CANCELLED);
    assert_eq!(cancelled.len(), 1, "cancelled first");
    assert!(cancelled[0].at - started >= settings().shutdown_grace);
    assert_eq!(
        props.journal.of(ends).len(),
        1,
        "{:?}",
        props.journal.entries()
    );

    let again = elsewhere.journal.wait_for(What::Started, 1, LIMIT).await;
    assert_eq!(
        (&again[0].id, again[0].attempt),
        (&id, 1),
        "no retry was spent"
    );
    assert!(again[0].at > cancelled[0].at, "never on both at once");
    elsewhere.gate.open();
    stage.wait_until_done(1).await;
    assert_eq!(
        second.stop().await.stats.recovered,
        0,
        "not by a lost lease"
    );
    assert_eq!(stage.total("retried").await, 0);
}

#[tokio::test]
async fn a_long_handler_is_cancelled_and_its_task_runs_elsewhere_without_a_retry() {
    is_handed_over("hand-over", Act::Wait, CANCELLED).await;
}

#[tokio::test]
async fn a_long_handler_that_ignores_the_shutdown_is_dropped_and_its_task_runs_elsewhere() {
    is_handed_over("hand-over-deaf", Act::Sleep(60_000), What::Dropped).await;
}

#[tokio::test]
async fn a_handler_that_ends_within_the_cancel_grace_completes() {
    let stage = Stage::new("cancel-grace").await;
    let props = stage.props();
    let server = props.serve(settings()).await;
    // Ends 0.5 s after its cancellation; the other one at once, and well.
    let ids = stage.enqueue_many([Act::Sleep(1_500), Act::Finish]).await;
    props.journal.wait_for(What::Started, 2, LIMIT).await;
    let stats = server.stop().await.stats;
    assert_eq!((stats.completed, stats.released), (2, 0), "{stats:?}");
    assert_eq!(props.journal.ids(CANCELLED), ids);
    assert_eq!(props.journal.ids(What::Ended), ids);
    stage.wait_until_done(2).await;
}

/// The blocking handler is given up; its lease runs out, so that its task does not run twice at
/// once for as long as the lease lasts.
#[tokio::test]
async fn the_report_names_handlers_that_still_run_and_their_tasks_run_elsewhere() {
    let stage = Stage::new("still-running").await;
    let settings = Settings {
        shutdown_grace: ms(100),
        cancel_grace: ms(300),
        ..Settings::default()
    };
    let props = stage.props();
    let server = props.serve(settings).await;
    let id = stage.enqueue(Block).await;
    props.journal.wait_for(What::Started, 1, LIMIT).await;
    let ended = stage.enqueue(NewTask::from(Act::Sleep(0))).await;
    props.journal.wait_for(What::Ended, 1, LIMIT).await;
    assert_eq!(props.journal.ids(What::Ended), [ended]);

    let report = server.stop().await;
    let [still] = &report.still_running[..] else {
        panic!("one handler still runs: {report:?}");
    };
    assert_eq!(
        (&still.id, &*still.kind, &*still.queue),
        (&id, "block", "default")
    );
    assert!(still.running_for >= ms(400), "{still:?}");
    assert_eq!(
        (report.stats.completed, report.stats.released),
        (1, 0),
        "{report:?}"
    );
    assert_eq!(stage.state(&id).await, "active", "still leased");

    let elsewhere = stage.props();
    elsewhere.gate.open();
    let second = elsewhere.serve(settings).await;
    let again = elsewhere.journal.wait_for(What::Ended, 1, LIMIT).await;
    assert_eq!((&again[0].id, again[0].attempt), (&id, 2));
    stage.wait_until_done(2).await;
    second.stop().await;
    props.gate.open();
}
