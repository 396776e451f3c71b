//! Only the connection that waits for work fails.

use std::time::Duration;

use tokio::time::Instant;
use windlass::Router;
use windlass::task::RawTask;

use crate::fixture::{LIMIT, Stage};
use crate::seen::seen;
use crate::support::{Mode, Proxy, RedisServer, eventually};

/// How long one wait for work lasts at most.
const BLOCK: Duration = Duration::from_secs(1);
/// For what is not the wait: reconnecting, and other tests.
const SLACK: Duration = Duration::from_millis(500);

/// Lets `fail` do something to the waiting connection, `times` times; answers how long a task that
/// is enqueued right after waited at most.
async fn slowest_pickup(name: &str, times: usize, fail: impl AsyncFn(&Proxy, u64)) -> Duration {
    let proxy = Proxy::start(RedisServer::shared().port());
    let stage = Stage::new(name).await;
    // The client reaches Redis directly.
    let client = stage.client().await;
    let stage = stage.behind(proxy.url());
    let (says, mut starts) = seen();
    let router = Router::new().raw("kind", move |_: RawTask| {
        let said = says.send(Instant::now());
        async move { said.map_err(|error| error.to_string()) }
    });
    let server = stage.serve_with(stage.server(), router).await;
    let mut slowest = Duration::ZERO;
    let mut failed = 0;
    for _ in 0..times {
        let waiting = eventually("the server waits for work", LIMIT, async || {
            let open = proxy.open().into_iter();
            let mut waits = open.filter(|connection| connection.commands.contains("BLPOP"));
            // One that failed may not be closed yet.
            waits.find(|connection| connection.id > failed)
        })
        .await;
        failed = waiting.id;
        fail(&proxy, failed).await;
        let start = Instant::now();
        client.enqueue(RawTask::new("kind", "x")).await.unwrap();
        slowest = slowest.max(starts.next().await - start);
    }
    println!("{name}: picked up after {slowest:?} at most");
    server.stop().await;
    slowest
}

#[tokio::test]
async fn work_resumes_when_the_wait_is_black_holed() {
    let fail = async |proxy: &Proxy, id| proxy.set_mode_of(id, Mode::BlackHole);
    let slowest = slowest_pickup("black-hole", 4, fail).await;
    assert!(slowest < 2 * BLOCK + SLACK, "{slowest:?}");
}

#[tokio::test]
async fn work_resumes_when_the_wait_is_reset() {
    let fail = async |proxy: &Proxy, id| proxy.reset(id);
    let slowest = slowest_pickup("reset", 10, fail).await;
    assert!(slowest < BLOCK, "{slowest:?}");
}

#[tokio::test]
async fn work_resumes_when_new_connections_are_refused_for_a_while() {
    let fail = async |proxy: &Proxy, id| {
        proxy.set_mode(Mode::Refuse);
        proxy.reset(id);
        // The while itself: nothing can be waited for.
        tokio::time::sleep(Duration::from_millis(700)).await;
        proxy.set_mode(Mode::Pass);
    };
    let slowest = slowest_pickup("refused", 3, fail).await;
    assert!(slowest < 2 * BLOCK + SLACK, "{slowest:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_wait_on_a_new_connection_gets_its_task_at_once() {
    let proxy = Proxy::start(RedisServer::shared().port());
    let stage = Stage::new("anew").await;
    let client = stage.client().await;
    let stage = stage.behind(proxy.url());
    let mut lost = 0;
    for round in 0..8 {
        let (says, mut starts) = seen();
        let router = Router::new().raw("kind", move |_: RawTask| {
            let said = says.send(Instant::now());
            async move { said.map_err(|error| error.to_string()) }
        });
        let server = stage.serve_with(stage.server(), router).await;
        for connection in ["first", "second"] {
            lost = eventually("the server waits, with a claim behind", LIMIT, async || {
                let open = proxy.open().into_iter();
                let mut waits = open.filter(|connection| {
                    let sent = &connection.commands;
                    sent.contains("BLPOP") && sent.contains("EVALSHA")
                });
                let wait = waits.find(|connection| connection.id > lost);
                wait.map(|connection| connection.id)
            })
            .await;
            let start = Instant::now();
            client.enqueue(RawTask::new("kind", "x")).await.unwrap();
            let waited = starts.next().await - start;
            assert!(
                waited < BLOCK / 2,
                "round {round}, {connection}: {waited:?}"
            );
            proxy.reset(lost);
        }
        server.stop().await;
    }
}
