//! Handlers that leave no processor, or no thread of the runtime, to anybody else.

use std::future::pending;
use std::sync::{Arc, Mutex, mpsc};
use std::thread::{self, JoinHandle, available_parallelism};
use std::time::{Duration, Instant};

use tokio::runtime;
use windlass::server::{Report, ServerHandle};
use windlass::task::RawTask;
use windlass::{Router, State, TaskContext};

use crate::fixture::{Journal, Settings, What};
use crate::support::{LIMIT, Stage, eventually, within};

/// More than three leases of [`Settings::default`].
const BUSY: Duration = Duration::from_millis(3_200);

async fn block(
    _: RawTask,
    State(journal): State<Journal>,
    context: TaskContext,
) -> Result<(), String> {
    journal.note(What::Started, &context);
    // Its work, which blocks.
    thread::sleep(BUSY);
    journal.note(What::Ended, &context);
    Ok(())
}

/// Longer than an outage that does no harm to a server with [`lasting`] leases.
const STALL: Duration = Duration::from_millis(1_500);

fn lasting() -> Settings {
    Settings {
        // Others of the server's parts run between two tasks, as with most that block.
        concurrency: 1,
        lease: Duration::from_secs(2),
        clock_skew: Duration::from_millis(500),
        ..Settings::default()
    }
}

async fn stall(
    _: RawTask,
    State(journal): State<Journal>,
    context: TaskContext,
) -> Result<(), String> {
    journal.note(What::Started, &context);
    // Its work, which blocks.
    thread::sleep(STALL);
    Ok(())
}

async fn spin(
    _: RawTask,
    State(journal): State<Journal>,
    context: TaskContext,
) -> Result<(), String> {
    journal.note(What::Started, &context);
    let start = Instant::now();
    while start.elapsed() < BUSY {
        std::hint::spin_loop();
    }
    journal.note(What::Ended, &context);
    Ok(())
}

async fn quick(
    _: RawTask,
    State(journal): State<Journal>,
    context: TaskContext,
) -> Result<(), String> {
    journal.note(What::Started, &context);
    journal.note(What::Ended, &context);
    Ok(())
}

fn router(journal: &Journal) -> Router {
    Router::new()
        .raw("block", block)
        .raw("stall", stall)
        .raw("spin", spin)
        .raw("quick", quick)
        .state(journal.clone())
}

/// A server on a runtime of its own with this many threads; ends after `stop`.
fn run_on_threads(
    stage: &Stage,
    settings: Settings,
    threads: usize,
    router: Router,
) -> (ServerHandle, JoinHandle<Report>) {
    let builder = settings.builder(stage);
    let (handle_in, handle) = mpsc::channel();
    let run = thread::spawn(move || {
        let mut runtime = match threads {
            1 => runtime::Builder::new_current_thread(),
            _ => runtime::Builder::new_multi_thread(),
        };
        let runtime = runtime
            .worker_threads(threads)
            .enable_all()
            .build()
            .unwrap();
        runtime.block_on(async {
            let server = builder.build(router).await.unwrap();
            handle_in.send(server.handle()).unwrap();
            server.run_until(pending()).await.unwrap()
        })
    });
    (handle.recv().unwrap(), run)
}

/// As many tasks of `kind` as the runtime has threads and one more that has to wait behind them: all
/// are claimed at once, and all are kept.
async fn keeps_its_leases(name: &str, kind: &str, threads: usize) {
    let stage = Stage::new(name).await;
    // Would take back any lease that runs out.
    let rescuer = stage.rescuer(Settings::default()).await;
    let mut tasks = vec![RawTask::new(kind, []); threads];
    tasks.push(RawTask::new("quick", []));
    let mut ids = stage.enqueue_many(tasks).await;
    ids.sort();
    let journal = Journal::default();
    let (handle, run) = run_on_threads(&stage, Settings::default(), threads, router(&journal));
    stage.wait_until_done(threads as u64 + 1).await;

    handle.stop();
    let join = tokio::task::spawn_blocking(|| run.join().unwrap());
    let report = within("the server ends", LIMIT, join).await.unwrap();
    assert_eq!(report.stats.leases_lost + report.stats.settles_refused, 0);
    assert_eq!(journal.ids(What::Ended), ids, "each ran once");
    let tried_twice = journal
        .entries()
        .into_iter()
        .find(|entry| entry.attempt > 1);
    assert!(tried_twice.is_none(), "{tried_twice:?}");
    let grace_until = stage.meta("grace_until").await;
    assert_eq!(grace_until, None, "leases could be taken all the time");
    rescuer.stop().await;
    assert_eq!(stage.total("recovered").await, 0);
}

#[tokio::test]
async fn a_handler_that_blocks_the_only_thread_for_three_leases_loses_none() {
    keeps_its_leases("blocks-one", "block", 1).await;
}

#[tokio::test]
async fn handlers_that_block_both_threads_for_three_leases_lose_none() {
    keeps_its_leases("blocks-two", "block", 2).await;
}

#[tokio::test]
async fn handlers_that_spin_on_every_core_for_three_leases_lose_none() {
    let cores = available_parallelism().map_or(2, |cores| cores.get());
    keeps_its_leases("spins", "spin", cores).await;
}

#[tokio::test]
async fn a_server_is_not_live_while_a_handler_blocks_its_runtime() {
    let stage = Stage::new("not-live").await;
    stage.enqueue(RawTask::new("hold", [])).await;
    let (release, released) = mpsc::channel::<()>();
    let released = Arc::new(Mutex::new(released));
    let router = Router::new().raw("hold", move |_: RawTask| {
        let released = released.clone();
        async move {
            released
                .lock()
                .unwrap()
                .recv()
                .map_err(|error| error.to_string())
        }
    });
    let (handle, run) = run_on_threads(&stage, Settings::default(), 1, router);
    eventually("it is not live", LIMIT, async || {
        let health = handle.health();
        (!health.is_live() && !health.is_ready())
            .then_some(())
            .ok_or(health)
    })
    .await;
    release.send(()).unwrap();
    eventually("it is live and ready again", LIMIT, async || {
        let health = handle.health();
        (health.is_live() && health.is_ready())
            .then_some(())
            .ok_or(health)
    })
    .await;
    handle.stop();
    let join = tokio::task::spawn_blocking(|| run.join().unwrap());
    let report = within("the server ends", LIMIT, join).await.unwrap();
    assert_eq!(report.stats.completed, 1);
}

/// Its heartbeats, on their own thread, show that Redis was there while it looked at nothing.
#[tokio::test]
async fn handlers_that_block_the_only_thread_again_and_again_delay_no_rescue() {
    const STALLS: usize = 14;
    let stage = Stage::new("stalls").await;
    let dead = stage.props();
    let dies = dead.hold(lasting()).await;
    let lost = stage.enqueue(RawTask::new("quick", [])).await;
    dead.journal.wait_for(What::Started, 1, LIMIT).await;
    dies.handle.quiet();
    stage
        .enqueue_many(vec![RawTask::new("stall", []); STALLS])
        .await;
    let journal = Journal::default();
    let (handle, run) = run_on_threads(&stage, lasting(), 1, router(&journal));
    journal.wait_for(What::Started, 1, LIMIT).await;
    dies.vanish().await;
    stage.wait_until_done(STALLS as u64 + 1).await;

    handle.stop();
    let join = tokio::task::spawn_blocking(|| run.join().unwrap());
    within("the server ends", LIMIT, join).await.unwrap();
    let started = journal.entries();
    let place = started.iter().position(|entry| entry.id == lost).unwrap();
    assert!(place < STALLS, "only once nothing blocked any more");
    assert_eq!(stage.total("recovered").await, 1);
}
