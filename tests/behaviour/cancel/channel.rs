//! How a running handler hears that it is to end.

use std::time::{Duration, Instant};

use windlass::handler::CancelReason;
use windlass::inspector::{CancelMode, ChangeOutcome};

use crate::support::{LIMIT, Mode, Proxy, RedisServer, Stage, eventually, puppet, task};

#[tokio::test]
async fn a_handler_hears_of_its_cancel_at_once() {
    let stage = Stage::new("at-once").await;
    let client = stage.client().await;
    let inspector = stage.inspector().await;
    let (router, mut calls) = puppet();
    // The default, so that no heartbeat can be what tells it.
    let settings = stage.server().heartbeat(Duration::from_secs(10));
    let server = stage.serve_with(settings, router).await;
    let mut took = Vec::new();
    for n in 0..20 {
        client.enqueue(task("x")).id(n.to_string()).await.unwrap();
        let call = calls.next().await;
        assert_eq!(call.context.cancel_reason(), None);
        if n == 0 {
            until_it_listens(&stage, call.context.server_id()).await;
        }
        let began = Instant::now();
        let cancel = inspector.cancel("default", call.id(), CancelMode::Decide);
        let answer = cancel.await.unwrap();
        let ChangeOutcome::Requested { server, .. } = answer else {
            panic!("{answer:?}");
        };
        assert_eq!(server, call.context.server_id());
        assert_eq!(call.cancelled().await, CancelReason::Requested);
        took.push(began.elapsed());
        call.complete();
    }
    took.sort_unstable();
    println!("a handler heard of its cancel after {took:?}");
    // Most of them, because this machine may have something else to do; and none late.
    assert!(
        took[took.len() / 2] < Duration::from_millis(100),
        "{took:?}"
    );
    assert!(took[took.len() - 1] < Duration::from_secs(5), "{took:?}");
    server.stop().await;
    stage.audit().await;
}

/// Until a server's control channel is open.
async fn until_it_listens(stage: &Stage, server: &str) {
    let channel = format!("{}:control:{server}", stage.prefix);
    eventually("the control channel is open", LIMIT, async || {
        let mut numsub = redis::cmd("PUBSUB");
        numsub.arg("NUMSUB").arg(&channel);
        let (_, listeners): (String, u64) = numsub.query_async(&mut stage.redis()).await.unwrap();
        (listeners == 1).then_some(())
    })
    .await;
}

#[tokio::test]
async fn the_next_heartbeat_tells_it_where_the_channel_is_cut() {
    let stage = Stage::new("cut").await;
    let proxy = Proxy::start(RedisServer::shared().port());
    let (router, mut calls) = puppet();
    let settings = stage.server().heartbeat(Duration::from_millis(1500));
    let settings = settings.redis(stage.config_of(&proxy.url()));
    let server = stage.serve_with(settings, router).await;
    let client = stage.client().await;
    client.enqueue(task("x")).await.unwrap();
    let call = calls.next().await;
    until_it_listens(&stage, call.context.server_id()).await;
    // Dead without a word: the server does not know that it hears nothing.
    let open = proxy.open();
    let channel = open.iter().find(|open| open.commands.contains("SUBSCRIBE"));
    proxy.set_mode_of(channel.expect("it is open").id, Mode::BlackHole);

    let inspector = stage.inspector().await;
    let cancel = inspector.cancel("default", call.id(), CancelMode::Archive);
    assert!(matches!(
        cancel.await.unwrap(),
        ChangeOutcome::Requested { .. }
    ));
    assert_eq!(call.cancelled().await, CancelReason::Requested);
    let id = call.id().to_owned();
    call.fail("cut short");
    assert_eq!(stage.wait_for_reason(&id).await, "cancelled");
    server.stop().await;
}

#[tokio::test]
async fn a_channel_that_was_cut_is_opened_again() {
    let stage = Stage::new("reopened").await;
    let proxy = Proxy::start(RedisServer::shared().port());
    let (router, mut calls) = puppet();
    let settings = stage.server().heartbeat(Duration::from_secs(10));
    let settings = settings.redis(stage.config_of(&proxy.url()));
    let server = stage.serve_with(settings, router).await;
    let client = stage.client().await;
    client.enqueue(task("x")).await.unwrap();
    let call = calls.next().await;
    for _ in 0..3 {
        until_it_listens(&stage, call.context.server_id()).await;
        let open = proxy.open();
        for channel in open
            .iter()
            .filter(|open| open.commands.contains("SUBSCRIBE"))
        {
            proxy.reset(channel.id);
        }
    }
    until_it_listens(&stage, call.context.server_id()).await;
    let inspector = stage.inspector().await;
    // The last connection may just be on its way out: then the next one is told.
    let began = Instant::now();
    eventually("it is told", LIMIT, async || {
        let cancel = inspector.cancel("default", call.id(), CancelMode::Decide);
        cancel.await.unwrap();
        call.context.is_cancelled().then_some(())
    })
    .await;
    assert!(began.elapsed() < Duration::from_secs(8), "by no heartbeat");
    call.complete();
    server.stop().await;
}

#[tokio::test]
async fn only_the_handler_that_is_meant_is_cancelled() {
    let stage = Stage::new("one").await;
    let client = stage.client().await;
    let inspector = stage.inspector().await;
    let (router, mut calls) = puppet();
    let servers = [stage.serve(router.clone()).await, stage.serve(router).await];
    let mut running = Vec::new();
    for n in 0..10 {
        client.enqueue(task("x")).id(n.to_string()).await.unwrap();
        running.push(calls.next().await);
    }
    let meant = running.remove(4);
    inspector
        .cancel("default", meant.id(), CancelMode::Decide)
        .await
        .unwrap();
    meant.cancelled().await;
    meant.complete();
    for call in running {
        assert!(!call.context.is_cancelled());
        call.complete();
    }
    for server in servers {
        server.stop().await;
    }
    assert_eq!(stage.total("cancels_requested").await, 1);
    stage.audit().await;
}

#[tokio::test]
async fn a_cancel_of_an_earlier_try_does_not_hit_the_next_one() {
    let stage = Stage::new("earlier").await;
    let client = stage.client().await;
    let inspector = stage.inspector().await;
    let (server, mut calls) = stage.serve_puppet().await;
    client.enqueue(task("x")).id("again").await.unwrap();
    let call = calls.next().await;
    inspector
        .cancel("default", "again", CancelMode::Decide)
        .await
        .unwrap();
    call.cancelled().await;
    call.retry_after(Duration::ZERO);
    let next = calls.next().await;
    assert!(!stage.record("again").await.contains_key("cancel"));
    // For some heartbeats.
    let until = stage.now().await + 1000;
    stage.wait_until(until).await;
    assert!(!next.context.is_cancelled());
    next.complete();
    assert_eq!(server.stop().await.stats.completed, 1);
    stage.audit().await;
}
