//! A server that is killed.

use std::time::{Duration, Instant};

use crate::fixture::{Act, Settings, What};
use crate::support::{LIMIT, Stage, ms};

/// A lease of 3 s, and a clock skew and scan of 500 ms.
#[tokio::test]
async fn the_tasks_of_a_killed_server_run_again_in_time() {
    let settings = Settings {
        lease: Duration::from_secs(3),
        clock_skew: ms(500),
        scan: ms(500),
        ..Settings::default()
    };
    let stage = Stage::new("killed").await;
    let mut first = stage.worker(settings).await;
    let mut ids = stage.enqueue_many([Act::Wait; 10]).await;
    ids.sort();
    first.wait_for("Started", 10).await;
    let props = stage.props();
    let second = props.serve(settings).await;
    first.signal("KILL");
    let killed = Instant::now();
    first.wait_exit().await;

    let started = props.journal.wait_for(What::Started, 10, LIMIT).await;
    assert_eq!(props.journal.ids(What::Started), ids);
    assert!(started.iter().all(|entry| entry.attempt == 2));
    let last = started.iter().map(|entry| entry.at - killed).max().unwrap();
    let first = started.iter().map(|entry| entry.at - killed).min().unwrap();
    let limit = settings.lease + settings.clock_skew + settings.scan + Duration::from_secs(1);
    println!("ran again {first:?} to {last:?} after the kill; at most {limit:?}");
    assert!(last <= limit, "{last:?}");
    // A lease that was not renewed since the last heartbeat still had this long.
    let least = settings.lease - settings.heartbeat() + settings.clock_skew - ms(100);
    assert!(first >= least, "{first:?}: before the lease was over");

    props.gate.open();
    stage.wait_until_done(10).await;
    assert_eq!(second.stop().await.stats.recovered, 10);
}
