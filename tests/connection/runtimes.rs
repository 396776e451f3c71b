//! A client that two runtimes share, of which one ends, or stands still.

use std::time::Duration;

use futures::FutureExt;
use futures::future::join_all;
use tokio::runtime::{Builder, Runtime};
use tokio::task::JoinHandle;
use windlass::client::{EnqueueError, WaitOutcome};
use windlass::error::BrokerError;
use windlass::task::RawTask;
use windlass::{Client, NewTask};

use crate::fixture::{LIMIT, Stage};
use crate::support::{RedisServer, within};

fn runtime() -> Runtime {
    let mut builder = Builder::new_multi_thread();
    builder.worker_threads(1).enable_all().build().unwrap()
}

fn task() -> NewTask {
    NewTask::from(RawTask::new("kind", "x"))
}

/// Polls once before it goes on in the background, so that it is on its way for sure.
fn begun<F>(runtime: &Runtime, future: F) -> JoinHandle<F::Output>
where
    F: Future<Output: Send> + Send + 'static,
{
    let mut future = Box::pin(future);
    let _runtime = runtime.enter();
    assert!((&mut future).now_or_never().is_none(), "nobody answers yet");
    runtime.spawn(future)
}

async fn works(client: &Client) {
    let enqueue = within(
        "an enqueue is answered",
        LIMIT,
        client.enqueue(task()).send(),
    );
    assert!(enqueue.await.unwrap().is_new());
    let many = within("a list is answered", LIMIT, client.enqueue_many([task()]));
    assert!(many.await.remove(0).unwrap().is_new());
}

#[test]
fn a_client_outlives_the_runtime_that_it_was_made_on() {
    let (first, second) = (runtime(), runtime());
    let client = first.block_on(async {
        let stage = Stage::new("outlives").await;
        stage.client().await
    });
    first.block_on(works(&client));
    second.block_on(works(&client));
    first.shutdown_timeout(Duration::from_secs(5));
    second.block_on(works(&client));
    let third = runtime();
    second.shutdown_timeout(Duration::from_secs(5));
    third.block_on(works(&client));
}

#[test]
fn enqueues_that_a_runtime_leaves_behind_are_answered() {
    let redis = RedisServer::start(&[]);
    let (first, second) = (runtime(), runtime());
    let client = first.block_on(async {
        let stage = Stage::on(&redis, "left-behind").await;
        stage.client().await
    });
    first.block_on(works(&client));
    redis.pause();
    // The first runtime sends, and Redis does not answer; the second one's tasks wait behind it.
    let sending = begun(&first, client.enqueue(task()).id("sending").send());
    let waiting: Vec<_> = (0..10)
        .map(|i| client.enqueue(task()).id(format!("waiting {i}")).send())
        .map(|enqueue| begun(&second, enqueue))
        .collect();
    first.shutdown_timeout(Duration::from_secs(5));
    redis.resume();
    assert!(second.block_on(sending).unwrap_err().is_cancelled());
    for enqueue in waiting {
        let answer = second
            .block_on(within("it is answered", LIMIT, enqueue))
            .unwrap();
        match answer {
            Ok(enqueued) => assert!(enqueued.is_new()),
            Err(EnqueueError::Refused(source)) => {
                assert!(matches!(source, BrokerError::NotSent), "{source:?}");
            }
            // The first runtime drove the connection on which it went.
            Err(EnqueueError::OutcomeUnknown { .. }) => {}
            Err(other) => panic!("{other:?}"),
        }
    }
    second.block_on(works(&client));
}

/// For connecting, and for each command.
const TIMEOUT: Duration = Duration::from_millis(500);
/// What an enqueue may take in all, and what other tests may add.
const BOUND: Duration = Duration::from_millis(1_500);

fn current_thread() -> Runtime {
    Builder::new_current_thread().enable_all().build().unwrap()
}

async fn client_with_limits(name: &str) -> Client {
    let config = Stage::new(name).await.config();
    let config = config.connect_timeout(TIMEOUT).command_timeout(TIMEOUT);
    Client::connect(config).await.unwrap()
}

/// Each call of every kind is answered within its limit, and with success: the runtime that asks can
/// do all that it takes.
async fn answered_in_time(client: &Client) {
    for round in 0..4 {
        let singles = (0..20).map(|_| client.enqueue(task()).send());
        let many = client.enqueue_many([task(), task()]);
        let wait = client.wait::<()>("default", "nothing", Duration::from_secs(5));
        let inspector = client.inspector();
        let look = inspector.task("default", "nothing");
        let all = async { tokio::join!(join_all(singles), many, wait, look) };
        let (singles, many, waited, looked) = within("all are answered", BOUND, all).await;
        for enqueued in singles.into_iter().chain(many) {
            assert!(enqueued.unwrap().is_new(), "round {round}");
        }
        assert!(
            matches!(waited, Ok(WaitOutcome::Gone)),
            "round {round}: {waited:?}"
        );
        assert!(matches!(looked, Ok(None)), "round {round}: {looked:?}");
    }
}

#[test]
fn a_runtime_that_stands_still_holds_up_no_call_of_another() {
    let (stands_still, other) = (current_thread(), current_thread());
    let (go_on, wait) = std::sync::mpsc::channel::<()>();
    let client = stands_still.block_on(client_with_limits("stands-still"));
    let (shared, begun) = (
        client.clone(),
        std::sync::Arc::new(std::sync::Barrier::new(2)),
    );
    let blocked = begun.clone();
    let thread = std::thread::spawn(move || {
        stands_still.block_on(async {
            works(&shared).await;
            // Calls that are on their way when the thread stops.
            let calls: Vec<_> = (0..20)
                .map(|_| tokio::spawn(shared.enqueue(task()).send()))
                .collect();
            tokio::task::yield_now().await;
            blocked.wait();
            wait.recv().unwrap();
            for call in calls {
                let answer = within("it is answered", LIMIT, call).await.unwrap();
                assert!(answer.is_ok(), "{answer:?}");
            }
        });
    });
    begun.wait();
    other.block_on(answered_in_time(&client));
    go_on.send(()).unwrap();
    thread.join().unwrap();
    other.block_on(works(&client));
}

#[test]
fn a_runtime_that_nobody_drives_holds_up_no_call_of_another() {
    let (undriven, other) = (current_thread(), current_thread());
    let client = undriven.block_on(client_with_limits("undriven"));
    undriven.block_on(works(&client));
    let calls: Vec<_> = (0..20)
        .map(|_| begun(&undriven, client.enqueue(task()).send()))
        .collect();
    other.block_on(answered_in_time(&client));
    for call in calls {
        let answer = undriven.block_on(within("it is answered", LIMIT, call));
        assert!(answer.unwrap().is_ok());
    }
}

#[test]
fn a_worker_thread_that_a_caller_blocks_holds_up_no_other_caller() {
    let mut builder = Builder::new_multi_thread();
    let runtime = builder.worker_threads(2).enable_all().build().unwrap();
    runtime.block_on(async {
        let client = client_with_limits("blocked-worker").await;
        works(&client).await;
        let (go_on, wait) = std::sync::mpsc::channel::<()>();
        let (is_blocked, blocked) = tokio::sync::oneshot::channel();
        let shared = client.clone();
        // What it has begun is to go on where it stands.
        let blocker = tokio::spawn(async move {
            let calls: Vec<_> = (0..20)
                .map(|_| Box::pin(shared.enqueue(task()).send()))
                .map(|mut call| ((&mut call).now_or_never(), call))
                .collect();
            is_blocked.send(()).unwrap();
            wait.recv().unwrap();
            for (answered, call) in calls {
                assert!(answered.is_none(), "it could not be answered yet");
                // It is late, and it may be told so.
                let _ = within("it is answered", LIMIT, call).await;
            }
        });
        blocked.await.unwrap();
        let callers = (0..20).map(|_| {
            let client = client.clone();
            tokio::spawn(async move {
                let start = std::time::Instant::now();
                (client.enqueue(task()).await, start.elapsed())
            })
        });
        for caller in join_all(callers).await {
            let (answer, took) = caller.unwrap();
            assert!(took < BOUND, "{took:?}: {answer:?}");
        }
        go_on.send(()).unwrap();
        blocker.await.unwrap();
        works(&client).await;
    });
}
