//! Ways to ask a server to stop, also more than once.

use std::thread;
use std::time::{Duration, Instant};

use redis::AsyncCommands;
use windlass::handler::CancelReason;
use windlass::server::{Phase, ServerHandle};
use windlass::{Router, State, TaskContext};

use crate::fixture::{Act, Journal, Settings, What};
use crate::support::{LIMIT, Running, Stage, eventually, ms};

#[tokio::test]
async fn stop_before_during_and_after_the_run_returns_and_ends_it_once() {
    let stage = Stage::new("stop-twice").await;
    let props = stage.props();
    let server = props.serve(Settings::default()).await;
    let id = stage.enqueue(Act::Sleep(1_000)).await;
    props.journal.wait_for(What::Started, 1, LIMIT).await;
    let handle = server.handle.clone();
    handle.stop();
    handle.stop();
    let report = server.end().await;
    assert_eq!(report.stats.completed, 1, "{report:?}");
    assert_eq!(props.journal.ids(What::Ended), [id]);
    handle.stop();
    handle.quiet();
    assert_eq!(handle.stats(), report.stats);

    let builder = Settings::default().builder(&stage);
    let server = builder.build(stage.props().router()).await.unwrap();
    server.handle().stop();
    let report = server.run_until(std::future::pending()).await.unwrap();
    assert_eq!(report.stats.claimed, 0, "stopped before it ran");
}

#[tokio::test]
async fn stop_from_ten_threads_ends_it_and_the_handlers_task_completes() {
    let stage = Stage::new("stop-ten").await;
    let props = stage.props();
    let server = props.serve(Settings::default()).await;
    stage.enqueue(Act::Sleep(1_000)).await;
    props.journal.wait_for(What::Started, 1, LIMIT).await;
    let handle = &server.handle;
    thread::scope(|scope| {
        for _ in 0..10 {
            scope.spawn(|| handle.stop());
        }
    });
    let report = server.end().await;
    assert_eq!(
        (report.stats.completed, report.stats.released),
        (1, 0),
        "{report:?}"
    );
    stage.wait_until_done(1).await;
}

/// Set once the server is built; its handlers exist before.
type LateHandle = std::sync::Arc<std::sync::OnceLock<ServerHandle>>;

async fn stops_its_server(
    _: Act,
    State(handle): State<LateHandle>,
    State(journal): State<Journal>,
    context: TaskContext,
) -> Result<(), String> {
    journal.note(What::Started, &context);
    handle.get().expect("the server runs").stop();
    // Work that outlasts the wish to stop.
    tokio::time::sleep(ms(100)).await;
    journal.note(What::Ended, &context);
    Ok(())
}

#[tokio::test]
async fn stop_from_inside_a_handler_ends_the_server_and_the_task_completes() {
    let stage = Stage::new("stop-inside").await;
    let late = LateHandle::default();
    let journal = Journal::default();
    let router = Router::new()
        .task(stops_its_server)
        .state(late.clone())
        .state(journal.clone());
    let builder = Settings::default().builder(&stage);
    let server = stage.serve_with(builder, router).await;
    late.set(server.handle.clone()).unwrap();
    // Two at once: the second stop hurries, and both still complete.
    stage.enqueue_many([Act::Wait; 2]).await;
    let report = server.end().await;
    let ended = journal.ids(What::Ended).len() as u64;
    assert!(ended >= 1, "{report:?}");
    assert_eq!(report.stats.completed, ended, "{report:?}");
    let census = stage.audit().await;
    assert_eq!(census.in_all_states(), census.pending, "{census:?}");
    assert_eq!(census.succeeded, ended);
}

#[tokio::test]
async fn a_second_sigterm_does_not_wait_for_the_shutdown_grace() {
    let stage = Stage::new("hurry").await;
    let settings = Settings {
        shutdown_grace: Duration::from_secs(600),
        ..Settings::default()
    };
    let mut worker = stage.worker(settings).await;
    let id = stage.enqueue(Act::Wait).await;
    worker.wait_for("Started", 1).await;
    let server = worker.server_ids().remove(0);
    worker.signal("TERM");
    wait_for_phase(&stage, &server, "stopping").await;
    assert_eq!(stage.state(&id).await, "active", "it waits");
    let hurried = Instant::now();
    worker.signal("TERM");
    assert_eq!(worker.report().await["released"], 1);
    assert!(hurried.elapsed() < Duration::from_secs(10));
    assert_eq!(
        worker.seen("Cancelled"),
        [format!("({:?}) {id} 1", CancelReason::Shutdown)]
    );
    assert_eq!(stage.state(&id).await, "pending");
}

#[tokio::test]
async fn sigtstp_makes_a_worker_quiet_until_it_is_stopped() {
    let stage = Stage::new("quiet").await;
    let settings = Settings {
        concurrency: 20,
        ..Settings::default()
    };
    let mut worker = stage.worker(settings).await;
    let running = stage.enqueue(Act::Sleep(1_500)).await;
    worker.wait_for("Started", 1).await;
    worker.signal("TSTP");
    let server = worker.server_ids().remove(0);
    wait_for_phase(&stage, &server, "quiet").await;

    // One that takes them one by one, while the quiet worker has room for all.
    let props = stage.props();
    let one_by_one = Settings {
        concurrency: 1,
        ..settings
    };
    let other = props.serve(one_by_one).await;
    stage.enqueue_many([Act::Sleep(10); 20]).await;
    props.journal.wait_for(What::Ended, 20, LIMIT).await;
    worker.wait_for("Ended", 1).await;
    worker.signal("TERM");
    let report = worker.report().await;
    assert_eq!(
        (report["claimed"], report["completed"]),
        (1, 1),
        "{report:?}"
    );
    assert_eq!(worker.seen("Ended"), [format!("{running} 1")]);
    assert_eq!(other.stop().await.stats.completed, 20);
}

#[tokio::test]
async fn sigcont_lets_a_worker_that_sigtstp_made_quiet_claim_again() {
    let stage = Stage::new("resume").await;
    let mut worker = stage.worker(Settings::default()).await;
    let server = worker.server_ids().remove(0);
    for round in 1..=2 {
        worker.signal("TSTP");
        wait_for_phase(&stage, &server, "quiet").await;
        worker.signal("CONT");
        wait_for_phase(&stage, &server, "running").await;
        stage.enqueue(Act::Sleep(0)).await;
        worker.wait_for("Ended", round).await;
    }
    worker.signal("TERM");
    assert_eq!(worker.report().await["completed"], 2);
}

#[tokio::test]
async fn sigcont_after_a_freeze_does_not_wake_a_worker_that_stops() {
    let stage = Stage::new("frozen-stop").await;
    let mut worker = stage.worker(Settings::default()).await;
    let running = stage.enqueue(Act::Sleep(1_000)).await;
    worker.wait_for("Started", 1).await;
    let server = worker.server_ids().remove(0);
    worker.signal("TSTP");
    worker.signal("TERM");
    wait_for_phase(&stage, &server, "stopping").await;
    worker.signal("STOP");
    worker.signal("CONT");
    stage.enqueue(Act::Sleep(0)).await;
    assert_eq!(worker.report().await["claimed"], 1);
    assert_eq!(worker.seen("Ended"), [format!("{running} 1")]);
}

#[tokio::test]
async fn a_quiet_server_can_be_resumed_and_a_stopped_one_cannot() {
    let stage = Stage::new("resumed").await;
    let props = stage.props();
    let server = Running::start_quiet(Settings::default().builder(&stage), props.router()).await;
    let id = stage.enqueue(Act::Sleep(0)).await;
    assert_eq!(server.handle.phase(), Phase::Quiet);
    assert_eq!(stage.state(&id).await, "pending");
    server.handle.resume();
    stage.wait_until_done(1).await;
    assert_eq!(server.handle.phase(), Phase::Running);
    // Nobody comes back from here.
    let handle = server.handle.clone();
    assert_eq!(server.stop().await.stats.completed, 1);
    handle.resume();
    assert_eq!(handle.phase(), Phase::Stopped);
}

/// Waits until the server's record in Redis shows this phase.
async fn wait_for_phase(stage: &Stage, server: &str, phase: &str) {
    let key = format!("{}:server:{server}", stage.prefix);
    let title = format!("the server is {phase}");
    eventually(&title, LIMIT, async || {
        let now: Option<String> = stage.redis().hget(&key, "phase").await.unwrap();
        if now.as_deref() == Some(phase) {
            Ok(())
        } else {
            Err(now)
        }
    })
    .await;
}
