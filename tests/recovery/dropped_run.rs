//! A server whose future is dropped, in a process that lives on.

use std::collections::BTreeMap;
use std::fs;
use std::future::pending;
use std::time::Duration;

use windlass::handler::CancelReason;

use crate::fixture::{Act, Block, Settings, What, Worker, block_on, from_env};
use crate::support::{LIMIT, Stage, child, eventually};

/// Serves until its parent has started as many tasks as it has slots, and then drops the server.
#[test]
#[ignore = "runs in a child process of other tests"]
fn drops_its_server() {
    if !child::end_with_parent() {
        return;
    }
    block_on(async {
        let (settings, props) = from_env().await;
        let server = settings
            .builder(&props.stage)
            .build(props.router())
            .await
            .unwrap();
        let before = threads();
        println!("serves {}", server.handle().id());
        let full = props
            .journal
            .wait_for(What::Started, settings.concurrency, LIMIT);
        tokio::select! {
            report = server.run_until(pending()) => panic!("it ended by itself: {report:?}"),
            _ = full => println!("dropped"),
        }
        let cancelled = What::Cancelled(CancelReason::Shutdown);
        props.journal.wait_for(cancelled, 2, LIMIT).await;
        props.gate.open();
        eventually("only the threads from before are left", LIMIT, async || {
            let now = threads();
            if now == before { Ok(()) } else { Err(now) }
        })
        .await;
        println!("clean");
        pending().await
    })
}

/// The names of this process' threads, and how many there are of each.
fn threads() -> BTreeMap<String, usize> {
    let mut threads = BTreeMap::new();
    // Linux only; elsewhere the map stays empty.
    for thread in fs::read_dir("/proc/self/task").into_iter().flatten() {
        // A thread may end while it is looked at.
        if let Ok(name) = fs::read_to_string(thread.unwrap().path().join("comm")) {
            *threads.entry(name).or_default() += 1;
        }
    }
    threads
}

#[tokio::test]
async fn dropping_the_run_ends_everything_and_its_tasks_run_elsewhere() {
    let stage = Stage::new("dropped").await;
    let settings = Settings {
        concurrency: 3,
        cancel_grace: Duration::from_millis(500),
        ..Settings::default()
    };
    let rescuer = stage.rescuer(settings).await;
    let mut dropper = Worker::start_entry("dropped_run::drops_its_server", &stage, settings);
    // One heeds its cancellation, one does not, and one blocks its own thread.
    let mut ids = stage.enqueue_many([Act::Wait, Act::Sleep(60_000)]).await;
    ids.push(stage.enqueue(Block).await);
    let server = dropper.wait_for("serves", 1).await.remove(0);
    dropper.wait_for("clean", 1).await;
    assert_eq!(
        dropper.seen("Cancelled(Shutdown)").len(),
        2,
        "those that can be told"
    );
    dropper.wait_for("Dropped", 1).await;

    let props = stage.props();
    let elsewhere = props.hold(settings).await;
    let again = props.journal.wait_for(What::Started, 3, LIMIT).await;
    assert!(again.iter().all(|entry| entry.attempt == 2));
    ids.sort();
    assert_eq!(props.journal.ids(What::Started), ids);
    let mut redis = stage.redis();
    let record = format!("{}:server:{server}", stage.prefix);
    let shown: bool = redis::AsyncCommands::exists(&mut redis, record)
        .await
        .unwrap();
    assert!(!shown, "its record has gone, too");
    dropper.signal("CONT"); // Panics if its process had ended.

    props.gate.open();
    stage.wait_until_done(3).await;
    elsewhere.stop().await;
    rescuer.stop().await;
}
