//! Signals that come after a server is built and before it runs.

use std::os::unix::process::ExitStatusExt;
use std::process::Command;

use redis::{AsyncCommands, Commands};
use tokio::signal::unix::{SignalKind, signal};

use crate::fixture::{Act, Settings, Worker, block_on, from_env, print_report};
use crate::support::child::end_with_parent;
use crate::support::{Stage, signal as signals};

/// Runs the child until it is built, sends it a signal, lets it run, and looks that it claims nothing.
async fn claims_nothing(stage: &Stage, mut child: Worker, signal: &str) {
    let id = stage.enqueue(Act::Sleep(0)).await;
    let pid = child.wait_for("built", 1).await.remove(0);
    signals::send(signal, pid.parse().expect("a process id"));
    let go_on = stage.redis().lpush(go_on_key(stage), "now").await;
    let _: () = go_on.expect("Redis takes it");
    assert_eq!(child.report().await["claimed"], 0);
    assert_eq!(stage.state(&id).await, "pending");
}

/// The service takes signals for itself as well: they do not end it.
#[tokio::test]
async fn a_signal_that_the_process_takes_is_obeyed_by_a_server_that_was_built() {
    for signal in ["TERM", "INT"] {
        let stage = Stage::new("early").await;
        let child = Worker::start_entry("early_signals::service", &stage, Settings::default());
        claims_nothing(&stage, child, signal).await;
    }
}

#[test]
#[ignore = "runs in a child process of other tests"]
fn service() {
    if !end_with_parent() {
        return;
    }
    block_on(async {
        let _terminate = signal(SignalKind::terminate()).unwrap();
        let _interrupt = signal(SignalKind::interrupt()).unwrap();
        build_and_run().await;
    });
}

/// Process 1 of a container: the system throws signals away for which it has no handler.
#[tokio::test]
async fn a_signal_to_process_1_is_obeyed_by_a_server_that_was_built() {
    const UNSHARE: [&str; 5] = ["unshare", "--user", "--map-root-user", "--pid", "--fork"];
    let allowed = Command::new(UNSHARE[0])
        .args(&UNSHARE[1..])
        .arg("true")
        .status();
    if !allowed.is_ok_and(|status| status.success()) {
        eprintln!("not tested: a process may have no process ids of its own here");
        return;
    }
    for signal in ["TERM", "INT", "HUP"] {
        let stage = Stage::new("process-1").await;
        let entry = "early_signals::process_1";
        let child = Worker::start_under(&UNSHARE, entry, &stage, Settings::default());
        claims_nothing(&stage, child, signal).await;
    }
}

#[test]
#[ignore = "runs in a child process of other tests"]
fn process_1() {
    if !end_with_parent() {
        return;
    }
    assert_eq!(std::process::id(), 1);
    // One thread, which hears of nothing while it is busy.
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap()
        .block_on(build_and_run());
}

/// No other process loses it: there, it does what it always does.
#[tokio::test]
async fn a_signal_that_nobody_takes_ends_a_process_that_has_built_a_server() {
    let stage = Stage::new("unheard").await;
    let mut child = Worker::start_entry("early_signals::plain", &stage, Settings::default());
    child.wait_for("built", 1).await;
    child.signal("TERM");
    assert_eq!(child.wait_exit().await.signal(), Some(15));
}

#[test]
#[ignore = "runs in a child process of other tests"]
fn plain() {
    if !end_with_parent() {
        return;
    }
    block_on(build_and_run());
}

fn go_on_key(stage: &Stage) -> String {
    format!("{}:go-on", stage.prefix)
}

/// Builds a server, says so, and runs it once the parent has sent its signal.
async fn build_and_run() {
    let (settings, props) = from_env().await;
    let builder = settings.builder(&props.stage);
    let server = builder.build(props.router()).await.unwrap();
    // As its parent sees it, also where it is process 1.
    let pid = std::fs::read_link("/proc/self").unwrap();
    println!("built {}", pid.display());
    // Blocks the thread, as other work before `run` may do.
    let redis = redis::Client::open(props.stage.url()).unwrap();
    let mut redis = redis.get_connection().unwrap();
    let told: Option<(String, String)> = redis.blpop(go_on_key(&props.stage), 30.0).unwrap();
    told.expect("the parent tells it to go on");
    let report = server.run().await.unwrap();
    print_report(&[report]);
}
