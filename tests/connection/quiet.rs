//! A network that forgets connections which were quiet for a while, as a NAT does: what is sent on
//! them is lost, and nobody is told.

use std::time::Duration;

use tokio::time::Instant;
use windlass::Router;
use windlass::client::WaitOutcome;
use windlass::inspector::CancelMode;
use windlass::task::RawTask;

use crate::seen::seen;
use crate::support::{LIMIT, Mode, Proxy, RedisServer, Stage};

/// Longer than a connection may be quiet without being doubted.
const QUIET: Duration = Duration::from_millis(1_200);
/// What a call may take that finds its connection dead. A command may take five seconds.
const SOON: Duration = Duration::from_millis(1_500);

/// Everything that is open now is forgotten.
fn forget(proxy: &Proxy, which: impl Fn(&crate::support::proxy::Connection) -> bool) {
    for connection in proxy.open().into_iter().filter(which) {
        proxy.set_mode_of(connection.id, Mode::BlackHole);
    }
}

#[tokio::test]
async fn no_call_of_a_client_or_an_inspector_fails_or_waits_for_long() {
    let proxy = Proxy::start(RedisServer::shared().port());
    let stage = Stage::new("quiet").await.behind(proxy.url());
    let client = stage.client().await;
    let inspector = stage.inspector().await;
    let task = || RawTask::new("kind", "x");
    for round in 0..3 {
        let id = client.enqueue(task()).await.unwrap().id;
        let many = client.enqueue_many([task()]).await;
        assert!(many.iter().all(Result::is_ok), "{many:?}");
        assert!(inspector.task("default", &id).await.unwrap().is_some());
        // The quiet itself.
        tokio::time::sleep(QUIET).await;
        forget(&proxy, |_| true);
        let start = Instant::now();
        let single = async {
            client.enqueue(task()).await.unwrap();
            start.elapsed()
        };
        let many = async {
            let many = client.enqueue_many([task()]).await;
            assert!(many.iter().all(Result::is_ok), "{many:?}");
            start.elapsed()
        };
        let look = async {
            assert!(inspector.task("default", &id).await.unwrap().is_some());
            inspector
                .cancel("default", &id, CancelMode::Delete)
                .await
                .unwrap();
            start.elapsed()
        };
        let wait = async {
            let waited = client.wait::<()>("default", "nothing", LIMIT).await;
            assert!(matches!(waited, Ok(WaitOutcome::Gone)), "{waited:?}");
            start.elapsed()
        };
        let took = tokio::join!(single, many, look, wait);
        println!("round {round}: {took:?}");
        for took in [took.0, took.1, took.2, took.3] {
            assert!(took < SOON, "{took:?}");
        }
    }
}

#[tokio::test]
async fn a_burst_of_work_starts_soon_and_is_settled_soon() {
    let proxy = Proxy::start(RedisServer::shared().port());
    let stage = Stage::new("burst").await;
    let client = stage.client().await;
    let stage = stage.behind(proxy.url());
    let (says, mut ends) = seen();
    let router = Router::new().raw("kind", move |_: RawTask| {
        let said = says.send(());
        async move { said.map_err(|error| error.to_string()) }
    });
    // Rare enough for each connection to be quiet.
    let settings = stage.server().lease(3 * LIMIT).scan_interval(LIMIT);
    let settings = settings.sweep_interval(LIMIT);
    let settings = settings.heartbeat(Duration::from_secs(5)).concurrency(4);
    let server = stage.serve_with(settings, router).await;
    let burst = || (0..40).map(|_| RawTask::new("kind", "x"));
    for round in 0..2 {
        client.enqueue_many(burst()).await;
        ends.take(40).await;
        stage.wait_until_drained("default", LIMIT).await;
        // The quiet itself.
        tokio::time::sleep(QUIET).await;
        // The one that waits for work is not quiet.
        forget(&proxy, |open| !open.commands.contains("BLPOP"));
        let start = Instant::now();
        client.enqueue_many(burst()).await;
        ends.take(40).await;
        let ran = start.elapsed();
        stage.wait_until_drained("default", LIMIT).await;
        let settled = start.elapsed();
        println!("round {round}: ran after {ran:?}, settled after {settled:?}");
        assert!(ran < 2 * SOON && settled < 3 * SOON, "{ran:?} {settled:?}");
    }
    server.stop().await;
}

#[tokio::test]
async fn a_cancel_reaches_its_handler_although_the_channel_was_forgotten() {
    let proxy = Proxy::start(RedisServer::shared().port());
    let stage = Stage::new("channel").await;
    let client = stage.client().await;
    let inspector = stage.inspector().await;
    let stage = stage.behind(proxy.url());
    let (router, mut calls) = crate::support::puppet::puppet();
    // So rare that it would tell of the cancel too late.
    let settings = stage.server().lease(3 * LIMIT).heartbeat(LIMIT);
    let server = stage.serve_with(settings, router).await;
    let id = client.enqueue(RawTask::new("kind", "x")).await.unwrap().id;
    let call = calls.next().await;
    forget(&proxy, |open| open.commands.contains("SUBSCRIBE"));
    // Until it is found out, nobody hears: a channel that is quiet is asked for a sign of life.
    crate::support::eventually("the channel is opened anew", LIMIT, async || {
        let open = proxy.open();
        let live = open
            .iter()
            .filter(|open| open.commands.contains("SUBSCRIBE"));
        (live.count() > 1).then_some(())
    })
    .await;
    inspector
        .cancel("default", &id, CancelMode::Delete)
        .await
        .unwrap();
    call.context.cancelled().await;
    server.stop().await;
}
