//! Many servers that see the same lost leases at the same time.

use std::collections::BTreeSet;

use crate::fixture::{Act, Settings};
use crate::support::{LIMIT, Stage, eventually};

const TASKS: u64 = 1_000;

#[tokio::test]
async fn twenty_servers_take_back_a_thousand_lost_leases_once_each() {
    let stage = Stage::new("twenty").await;
    let holding = Settings {
        concurrency: TASKS as usize,
        ..Settings::default()
    };
    let holder = stage.props().hold(holding).await;
    let ids = stage.enqueue_many((0..TASKS).map(|_| Act::Mark(0))).await;
    eventually("all tasks are leased", LIMIT, async || {
        let census = stage.audit().await;
        (census.active == TASKS).then_some(()).ok_or(census)
    })
    .await;

    let mut twenty = stage
        .worker(Settings {
            servers: 20,
            concurrency: 20,
            ..Settings::default()
        })
        .await;
    let servers: BTreeSet<_> = twenty.server_ids().into_iter().collect();
    assert_eq!(servers.len(), 20);
    holder.vanish().await;
    stage.wait_until_done(TASKS).await;

    let marks = stage.marks().await;
    assert_eq!(marks.len(), ids.len());
    assert!(marks.values().all(|times| *times == 1), "each ran once");
    for name in ["recovered", "retried", "failed"] {
        assert_eq!(stage.total(name).await, TASKS, "{name}");
    }
    twenty.signal("TERM");
    let report = twenty.report().await;
    assert_eq!(report["recovered"], TASKS, "{report:?}");
    assert_eq!(
        report["settles_refused"] + report["leases_lost"],
        0,
        "{report:?}"
    );
    let second_attempts = twenty
        .seen("Ended")
        .into_iter()
        .filter(|line| line.ends_with(" 2"));
    assert_eq!(
        second_attempts.count() as u64,
        TASKS,
        "`retried` is 1 for each"
    );
    let errors: Vec<_> = twenty.seen("ERROR");
    assert!(errors.is_empty(), "{errors:#?}");
}
