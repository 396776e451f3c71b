//! A producer whose Redis is away.

use std::sync::Arc;
use std::time::Duration;

use futures::future::join_all;
use tokio::time::{Instant, sleep};
use windlass::client::EnqueueError;
use windlass::error::{BrokerError, ConnectProblem};
use windlass::task::RawTask;
use windlass::{Client, NewTask, RedisConfig};

use crate::fixture::{LIMIT, Stage};
use crate::support::{Mode, Proxy, RedisServer, eventually};

/// For connecting, and for each command.
const TIMEOUT: Duration = Duration::from_millis(400);
/// What an enqueue may take in all, and what other tests may add.
const BOUND: Duration = TIMEOUT
    .saturating_mul(2)
    .saturating_add(Duration::from_millis(300));

fn config(stage: &Stage) -> RedisConfig {
    let config = stage.config().connect_timeout(TIMEOUT);
    config.command_timeout(TIMEOUT)
}

async fn client(stage: &Stage) -> Client {
    Client::connect(config(stage)).await.unwrap()
}

fn task() -> NewTask {
    NewTask::from(RawTask::new("kind", "x"))
}

/// Enqueues at many moments, a pace apart, in several queues, one by one and in lists: each must fail in time.
async fn all_fail_in_time(client: &Client) -> Vec<EnqueueError> {
    let singles = (0..40).map(|i| async move {
        sleep(Duration::from_millis(i * 25)).await;
        let start = Instant::now();
        let enqueue = client.enqueue(task()).queue(format!("q{}", i % 8));
        (enqueue.await.expect_err("Redis is away"), start.elapsed())
    });
    let lists = (0..6).map(|i| async move {
        sleep(Duration::from_millis(i * 100)).await;
        let start = Instant::now();
        let tasks = (0..1_000).map(|i| task().queue(format!("q{}", i % 8)));
        let results = client.enqueue_many(tasks).await;
        let mut errors = results
            .into_iter()
            .map(|result| result.expect_err("Redis is away"));
        (errors.next().unwrap(), start.elapsed())
    });
    let (singles, lists) = tokio::join!(join_all(singles), join_all(lists));
    let mut errors = Vec::new();
    let mut slowest = Duration::ZERO;
    for (error, took) in singles.into_iter().chain(lists) {
        slowest = slowest.max(took);
        errors.push(error);
    }
    println!("timeouts of {TIMEOUT:?}: each failed within {slowest:?}");
    assert!(slowest < BOUND, "{slowest:?}");
    errors
}

/// The first enqueues after Redis is back must work, once it is.
async fn works_again(client: &Client) {
    for _ in 0..3 {
        assert!(client.enqueue(task()).await.unwrap().is_new());
        let many = client.enqueue_many([task(), task().queue("other")]).await;
        assert!(many.into_iter().all(|result| result.unwrap().is_new()));
    }
}

fn is_connect(error: &EnqueueError, expected: ConnectProblem) -> bool {
    let EnqueueError::Refused(source) = error else {
        return false;
    };
    matches!(source, BrokerError::Connect { problem, .. } if *problem == expected)
}

#[tokio::test]
async fn it_gets_an_error_in_time_while_redis_is_down() {
    let redis = Arc::new(RedisServer::start(&[]));
    let stage = Stage::on(&redis, "down").await;
    let client = client(&stage).await;
    works_again(&client).await;
    redis.kill();
    let errors = all_fail_in_time(&client).await;
    let refused = errors
        .iter()
        .filter(|error| is_connect(error, ConnectProblem::Refused));
    assert!(refused.count() > errors.len() / 2, "{errors:#?}");
    let restarted = redis.clone();
    tokio::task::spawn_blocking(move || restarted.restart())
        .await
        .unwrap();
    works_again(&client).await;
}

#[tokio::test]
async fn it_gets_an_error_in_time_while_redis_is_black_holed() {
    let proxy = Proxy::start(RedisServer::shared().port());
    let stage = Stage::new("black-holed").await.behind(proxy.url());
    let client = client(&stage).await;
    works_again(&client).await;
    proxy.set_mode(Mode::BlackHole);
    let errors = all_fail_in_time(&client).await;
    let timed_out = errors
        .iter()
        .filter(|error| is_connect(error, ConnectProblem::Timeout));
    assert!(timed_out.count() > 0, "{errors:#?}");
    proxy.set_mode(Mode::Pass);
    works_again(&client).await;
}

#[tokio::test]
async fn it_gets_an_error_in_time_while_redis_is_frozen() {
    let redis = RedisServer::start(&[]);
    let stage = Stage::on(&redis, "frozen").await;
    let client = client(&stage).await;
    works_again(&client).await;
    redis.pause();
    all_fail_in_time(&client).await;
    redis.resume();
    works_again(&client).await;
}

#[tokio::test]
async fn it_notices_nothing_of_a_restart_while_it_was_idle() {
    let redis = Arc::new(RedisServer::start(&[]));
    let stage = Stage::on(&redis, "restarted").await;
    let client = client(&stage).await;
    for _ in 0..3 {
        works_again(&client).await;
        let restarted = redis.clone();
        tokio::task::spawn_blocking(move || restarted.restart())
            .await
            .unwrap();
        // Idle for longer than it trusts a connection: time is what this is about.
        sleep(Duration::from_millis(1_500)).await;
    }
    works_again(&client).await;
}

#[tokio::test]
async fn it_notices_nothing_when_redis_closes_idle_connections() {
    let redis = RedisServer::start(&[("timeout", "1")]);
    let stage = Stage::on(&redis, "closed").await;
    let client = client(&stage).await;
    works_again(&client).await;
    // The test's own connection is closed as well.
    eventually("Redis has closed all", LIMIT, async || {
        let info: String = redis::cmd("INFO")
            .arg("clients")
            .query_async(&mut redis.connection().await)
            .await
            .unwrap();
        info.contains("connected_clients:1\r\n").then_some(())
    })
    .await;
    works_again(&client).await;
}

#[tokio::test]
async fn it_works_as_soon_as_redis_comes_up() {
    let redis = RedisServer::start(&[]);
    let stage = Stage::on(&redis, "late").await;
    redis.kill();
    let client = Client::lazy(config(&stage)).unwrap();
    assert!(is_connect(
        &client.enqueue(task()).await.unwrap_err(),
        ConnectProblem::Refused
    ));
    let restarting = tokio::task::spawn_blocking(move || {
        redis.restart();
        redis
    });
    let _redis = restarting.await.unwrap();
    works_again(&client).await;
}

#[tokio::test]
async fn it_gets_an_error_in_time_while_redis_answers_but_takes_no_writes() {
    let redis = RedisServer::start(&[]);
    let stage = Stage::on(&redis, "paused").await;
    let client = client(&stage).await;
    works_again(&client).await;
    let pause = async |command: &[&str]| {
        let mut pause = redis::cmd("CLIENT");
        let done = pause.arg(command).exec_async(&mut stage.redis()).await;
        done.unwrap();
    };
    pause(&["PAUSE", "60000", "WRITE"]).await;
    all_fail_in_time(&client).await;
    pause(&["UNPAUSE"]).await;
    works_again(&client).await;
}

#[tokio::test]
async fn many_lists_at_a_time_are_all_taken() {
    let stage = Stage::new("lists").await;
    // Much less than they take together.
    let config = stage.config().connect_timeout(TIMEOUT);
    let client = Client::connect(config.command_timeout(TIMEOUT))
        .await
        .unwrap();
    let start = Instant::now();
    let lists = (0..150).map(|_| client.enqueue_many((0..500).map(|_| task())));
    let refused: Vec<_> = join_all(lists)
        .await
        .into_iter()
        .flatten()
        .filter_map(Result::err)
        .collect();
    println!("150 lists took {:?}", start.elapsed());
    assert!(start.elapsed() > TIMEOUT, "too quick to show anything");
    assert!(refused.is_empty(), "{}: {:?}", refused.len(), refused[0]);
}
