//! Workers that get SIGHUP: their terminal closes.

use crate::fixture::{Act, ENTRY, Settings, Worker};
use crate::support::Stage;

#[tokio::test]
async fn sighup_stops_a_worker_and_its_handlers_end() {
    let stage = Stage::new("hang-up").await;
    // Also the second server in a process, by which time the first one takes the signal.
    let settings = Settings {
        servers: 2,
        ..Settings::default()
    };
    let mut worker = stage.worker(settings).await;
    let id = stage.enqueue(Act::Sleep(500)).await;
    worker.wait_for("Started", 1).await;
    worker.signal("HUP");
    assert_eq!(worker.report().await["completed"], 1);
    assert_eq!(worker.seen("Ended"), [format!("{id} 1")]);
}

#[tokio::test]
async fn a_worker_under_nohup_survives_sighup() {
    let stage = Stage::new("nohup").await;
    let nohup = ["sh", "-c", "trap '' HUP; exec \"$@\"", "sh"];
    let mut worker = Worker::start_under(&nohup, ENTRY, &stage, Settings::default());
    worker.wait_for("serves", 1).await;
    worker.signal("HUP");
    stage.enqueue(Act::Sleep(0)).await;
    worker.wait_for("Ended", 1).await;
    worker.signal("TERM");
    assert_eq!(worker.report().await["completed"], 1);
}
