//! Those who wait get over a network that is cut and a Redis that restarts.

use std::time::Duration;

use windlass::Client;
use windlass::client::WaitOutcome;

use super::{enqueue_and_wait, heard, listeners, until_waited_for, wait_for};
use crate::support::{LIMIT, Mode, Proxy, RedisServer, Stage, eventually, ms, task, within};

/// A client behind a network that can be cut.
async fn client_behind(proxy: &Proxy, stage: &Stage) -> Client {
    let client = Client::builder().redis(stage.config_of(&proxy.url()));
    client.connect().await.unwrap()
}

/// The connection on which the ends of tasks are told.
fn subscription(proxy: &Proxy) -> u64 {
    let open = proxy.open();
    let open = open.iter().find(|open| open.commands.contains("SUBSCRIBE"));
    open.expect("somebody listens").id
}

#[tokio::test]
async fn an_end_while_the_subscription_is_cut_is_found() {
    let stage = Stage::new("cut").await;
    let proxy = Proxy::start(RedisServer::shared().port());
    let client = client_behind(&proxy, &stage).await;
    let (server, mut calls) = stage.serve_puppet().await;
    let (id, wait) = enqueue_and_wait(&stage, &client).await;

    proxy.set_mode(Mode::Refuse);
    proxy.reset(subscription(&proxy));
    eventually("the subscription is gone", LIMIT, async || {
        (listeners(&stage).await == 0).then_some(())
    })
    .await;
    calls.next().await.complete_with("unheard");
    stage.wait_for_state(&id, "completed").await;
    proxy.set_mode(Mode::Pass);
    assert_eq!(
        heard(wait).await,
        WaitOutcome::Completed("unheard".to_owned())
    );
    server.stop().await;
}

#[tokio::test]
async fn a_subscription_that_is_dead_without_a_word_delays_a_wait_by_seconds() {
    let stage = Stage::new("dead").await;
    let proxy = Proxy::start(RedisServer::shared().port());
    let client = client_behind(&proxy, &stage).await;
    let (server, mut calls) = stage.serve_puppet().await;
    let (_, wait) = enqueue_and_wait(&stage, &client).await;
    proxy.set_mode_of(subscription(&proxy), Mode::BlackHole);
    calls.next().await.complete_with("unheard");
    let waited = within("it looks for itself", Duration::from_secs(20), wait);
    assert_eq!(
        waited.await.unwrap(),
        WaitOutcome::Completed("unheard".to_owned())
    );
    server.stop().await;
}

#[tokio::test]
async fn a_wait_lasts_through_a_restart_of_redis() {
    let redis = RedisServer::start(&[("appendonly", "yes")]);
    let mut stage = Stage::on(&redis, "restart").await;
    let client = stage.client().await;
    let (server, mut calls) = stage.serve_puppet().await;
    let (_id, wait) = enqueue_and_wait(&stage, &client).await;
    let call = calls.next().await;

    redis.kill();
    tokio::task::yield_now().await;
    redis.restart();
    stage.reconnect(&redis).await;
    call.complete_with("after all");
    let waited = within("the wait ends", LIMIT, wait).await.unwrap();
    assert_eq!(waited, WaitOutcome::Completed("after all".to_owned()));
    server.stop().await;
}

#[tokio::test]
async fn a_wait_for_a_task_that_redis_forgot_ends() {
    let redis = RedisServer::start(&[]);
    let stage = Stage::on(&redis, "forgot").await;
    let client = stage.client().await;
    let id = client.enqueue(task("x")).await.unwrap().id;
    let wait = wait_for(&client, &id);
    until_waited_for(&stage, 1).await;
    redis.restart();
    let waited = within("the wait ends", LIMIT, wait).await.unwrap();
    assert_eq!(waited, WaitOutcome::Gone);
}

#[tokio::test]
async fn a_wait_on_a_redis_that_stays_away_fails_when_its_time_is_over() {
    let redis = RedisServer::start(&[]);
    let stage = Stage::on(&redis, "away").await;
    let client = stage.client().await;
    let id = client.enqueue(task("x")).await.unwrap().id;
    redis.kill();
    let wait = client.wait::<()>("default", &id, ms(500));
    let waited = within("the wait ends", Duration::from_secs(10), wait).await;
    assert!(
        matches!(waited, Err(windlass::client::WaitError::Broker(_))),
        "{waited:?}"
    );
}

#[tokio::test]
async fn a_wait_on_a_redis_that_does_not_answer_has_its_time_too() {
    let redis = RedisServer::start(&[]);
    let stage = Stage::on(&redis, "frozen").await;
    let client = stage.client().await;
    let id = client.enqueue(task("x")).await.unwrap().id;
    let waited = client.wait::<()>("default", &id, ms(500)).await;
    assert_eq!(waited.unwrap(), WaitOutcome::TimedOut);
    redis.pause();
    // A command's own limit, 5 s, is no limit of a wait.
    let wait = client.wait::<()>("default", &id, ms(500));
    let waited = within("the wait ends", Duration::from_secs(4), wait).await;
    redis.resume();
    assert!(
        matches!(waited, Err(windlass::client::WaitError::Broker(_))),
        "{waited:?}"
    );
}
