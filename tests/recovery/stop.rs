//! Ways to ask a server to stop, also more than once.

use std::thread;
use std::time::{Duration, Instant};

use redis::AsyncCommands;
use windlass::{CancelReason, Router, ServerHandle, State, TaskContext};

use crate::fixture::{Act, InProcess, Journal, LIMIT, Settings, Site, What, ms};
use crate::support::eventually;

#[tokio::test]
async fn stop_before_during_and_after_the_run_returns_and_ends_it_once() {
    let site = Site::new("stop-twice").await;
    let props = site.props();
    let server = site.server(Settings::default(), &props).await;
    let id = site.enqueue(Act::Sleep(1_000)).await;
    props.journal.wait_for(What::Started, 1, LIMIT).await;
    let handle = ServerHandle::clone(&server);
    handle.stop();
    handle.stop();
    let report = server.end().await;
    assert_eq!(report.stats.completed, 1, "{report:?}");
    assert_eq!(props.journal.ids(What::Ended), [id]);
    handle.stop();
    handle.quiet();
    assert_eq!(handle.stats(), report.stats);

    let builder = Settings::default().builder(&site.url, &site.prefix);
    let server = builder.build(site.props().router()).await.unwrap();
    server.handle().stop();
    let report = server.run_until(std::future::pending()).await.unwrap();
    assert_eq!(report.stats.claimed, 0, "stopped before it ran");
}

#[tokio::test]
async fn stop_from_ten_threads_ends_it_and_the_handlers_task_completes() {
    let site = Site::new("stop-ten").await;
    let props = site.props();
    let server = site.server(Settings::default(), &props).await;
    site.enqueue(Act::Sleep(1_000)).await;
    props.journal.wait_for(What::Started, 1, LIMIT).await;
    let handle: &ServerHandle = &server;
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
    site.wait_until_done(1).await;
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
    let site = Site::new("stop-inside").await;
    let late = LateHandle::default();
    let journal = Journal::default();
    let router = Router::new()
        .task(stops_its_server)
        .state(late.clone())
        .state(journal.clone());
    let builder = Settings::default().builder(&site.url, &site.prefix);
    let server = InProcess::start(builder, router).await;
    late.set(ServerHandle::clone(&server)).unwrap();
    // Two at once: the second stop hurries, and both still complete.
    site.enqueue_many([Act::Wait; 2]).await;
    let report = server.end().await;
    let ended = journal.ids(What::Ended).len() as u64;
    assert!(ended >= 1, "{report:?}");
    assert_eq!(report.stats.completed, ended, "{report:?}");
    let census = site.census().await;
    assert_eq!(census.in_all_states(), census.pending, "{census:?}");
    assert_eq!(census.completed, ended);
}

#[tokio::test]
async fn a_second_sigterm_does_not_wait_for_the_shutdown_grace() {
    let site = Site::new("hurry").await;
    let settings = Settings {
        shutdown_grace: Duration::from_secs(600),
        ..Settings::default()
    };
    let mut worker = site.worker(settings).await;
    let id = site.enqueue(Act::Wait).await;
    worker.wait_for("Started", 1).await;
    let server = worker.server_ids().remove(0);
    worker.signal("TERM");
    wait_for_phase(&site, &server, "stopping").await;
    assert_eq!(site.state(&id).await, Some("active"), "it waits");
    let hurried = Instant::now();
    worker.signal("TERM");
    assert_eq!(worker.report().await["released"], 1);
    assert!(hurried.elapsed() < Duration::from_secs(10));
    assert_eq!(
        worker.seen("Cancelled"),
        [format!("({:?}) {id} 1", CancelReason::Shutdown)]
    );
    assert_eq!(site.state(&id).await, Some("pending"));
}

#[tokio::test]
async fn sigtstp_makes_a_worker_quiet_until_it_is_stopped() {
    let site = Site::new("quiet").await;
    let settings = Settings {
        concurrency: 20,
        ..Settings::default()
    };
    let mut worker = site.worker(settings).await;
    let running = site.enqueue(Act::Sleep(1_500)).await;
    worker.wait_for("Started", 1).await;
    worker.signal("TSTP");
    let server = worker.server_ids().remove(0);
    wait_for_phase(&site, &server, "quiet").await;

    // One that takes them one by one, while the quiet worker has room for all.
    let props = site.props();
    let one_by_one = Settings {
        concurrency: 1,
        ..settings
    };
    let other = site.server(one_by_one, &props).await;
    site.enqueue_many([Act::Sleep(10); 20]).await;
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

/// Waits until the server's record in Redis shows this phase.
async fn wait_for_phase(site: &Site, server: &str, phase: &str) {
    let key = format!("{}:server:{server}", site.prefix);
    let title = format!("the server is {phase}");
    eventually(&title, LIMIT, async || {
        let now: Option<String> = site.redis.clone().hget(&key, "phase").await.unwrap();
        if now.as_deref() == Some(phase) {
            Ok(())
        } else {
            Err(now)
        }
    })
    .await;
}
