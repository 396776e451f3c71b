//! A worker that is frozen for longer than its lease, and wakes up when its tasks are another's.

use crate::fixture::{Act, Settings, What, Worker};
use crate::support::{Census, LIMIT, Stage};

/// A frozen worker whose tasks wait for a cancellation that ends in a late complete and a late retry,
/// and one that ends by itself while the worker is frozen.
async fn freeze_with_three_tasks(stage: &Stage) -> (Worker, Vec<String>) {
    let mut worker = stage.worker(Settings::default()).await;
    let mut ids = stage
        .enqueue_many([Act::Finish, Act::Wait, Act::Sleep(500)])
        .await;
    worker.wait_for("Started", 3).await;
    worker.signal("STOP");
    ids.sort();
    (worker, ids)
}

async fn end_after_three_refusals(worker: &mut Worker) {
    worker.wait_for("event SettleRefused", 3).await;
    worker.wait_for("Cancelled(LeaseLost)", 2).await;
    worker.signal("TERM");
    let report = worker.report().await;
    assert_eq!(report["settles_refused"], 3, "{report:?}");
    // The task that ended by itself may have ended before the heartbeat looked.
    let lost = report["leases_lost"];
    assert!((2..=3).contains(&lost), "{report:?}");
    assert_eq!(
        worker.seen("event LeaseLost").len() as u64,
        lost,
        "each lost lease is told once"
    );
    assert_eq!(report["completed"] + report["retried"], 0, "{report:?}");
}

#[tokio::test]
async fn a_frozen_workers_late_settles_are_refused_while_the_new_holder_runs() {
    let stage = Stage::new("frozen-stale").await;
    let (mut frozen, ids) = freeze_with_three_tasks(&stage).await;
    let props = stage.props();
    let second = props.hold(Settings::default()).await;
    let started = props.journal.wait_for(What::Started, 3, LIMIT).await;
    assert!(started.iter().all(|entry| entry.attempt == 2));

    frozen.signal("CONT");
    end_after_three_refusals(&mut frozen).await;
    // Three settles, and the extensions of the heartbeat that came before or between them.
    let stale = stage.total("stale").await;
    assert!((3..=6).contains(&stale), "{stale}");
    assert_eq!(stage.audit().await.active, 3);
    for id in &ids {
        assert_eq!(stage.state(id).await, "active");
        assert_eq!(stage.field(id, "retried").await.as_deref(), Some("1"));
    }

    props.gate.open();
    stage.wait_until_done(3).await;
    let report = second.stop().await;
    assert_eq!(report.stats.completed, 3);
    assert_eq!(report.stats.settles_refused + report.stats.leases_lost, 0);
}

#[tokio::test]
async fn a_frozen_workers_late_settles_are_refused_when_the_new_holder_is_done() {
    let stage = Stage::new("frozen-gone").await;
    let (mut frozen, ids) = freeze_with_three_tasks(&stage).await;
    let props = stage.props();
    props.gate.open();
    let second = props.serve(Settings::default()).await;
    stage.wait_until_done(3).await;

    frozen.signal("CONT");
    end_after_three_refusals(&mut frozen).await;
    let expected = Census {
        enqueued: 3,
        succeeded: 3,
        ..Census::default()
    };
    assert_eq!(stage.audit().await, expected, "nothing comes back");
    assert_eq!(props.journal.ids(What::Ended), ids, "each ran once there");
    let report = second.stop().await;
    assert_eq!(report.stats.completed, 3);
    assert_eq!(report.stats.settles_refused + report.stats.leases_lost, 0);
}
