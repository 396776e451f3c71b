//! Commands that the Redis user may not use.

use std::time::{Duration, Instant};

use futures::future::join_all;
use tracing::instrument::WithSubscriber;
use windlass::client::{EnqueueError, WaitOutcome};
use windlass::error::BrokerError;
use windlass::handler::CancelReason;
use windlass::inspector::{CancelMode, ChangeOutcome};
use windlass::task::RawTask;
use windlass::{Inspector, Router};

use crate::fixture::{Running, Stage};
use crate::seen::seen;
use crate::support::Log;
use crate::support::{HOUR, LIMIT, RedisServer, puppet, task};

/// A stage of a user with these permissions.
async fn stage_of(redis: &RedisServer, name: &str) -> Stage {
    let url = format!("redis://limited:secret@127.0.0.1:{}/", redis.port());
    Stage::on(redis, name).await.behind(url)
}

fn redis_with(rules: &str) -> RedisServer {
    let user = format!("limited on >secret ~* &* +@all {rules}");
    RedisServer::start(&[("user", &user), ("appendonly", "yes")])
}

#[tokio::test]
async fn checks_that_are_denied_are_skipped_and_named() {
    let cases = [
        ("-info", "denied INFO"),
        ("-config", "denied CONFIG GET"),
        ("-type", "denied TYPE"),
        ("-info -config -type -hget", "denied INFO"),
    ];
    for (rules, words) in cases {
        // Whether it saves to disk is asked for only where it does not append.
        let user = format!("limited on >secret ~* &* +@all {rules}");
        let redis = RedisServer::start(&[("user", &user)]);
        let stage = stage_of(&redis, "skipped").await;
        let (says, mut starts) = seen();
        let router = Router::new().raw("kind", move |_: RawTask| {
            let said = says.send(());
            async move { said.map_err(|error| error.to_string()) }
        });
        let log = Log::default();
        let built = stage
            .server()
            .build(router)
            .with_subscriber(log.subscriber())
            .await;
        let server = crate::fixture::Running::start(built.expect("it can work"));
        assert_eq!(log.count(words), 1, "{rules}: {:#?}", log.lines());
        assert_eq!(log.count("secret"), 0);
        stage
            .client()
            .await
            .enqueue(RawTask::new("kind", "x"))
            .await
            .unwrap();
        starts.next().await;
        stage
            .wait_until_drained("default", crate::fixture::LIMIT)
            .await;
        server.stop().await;
    }
}

#[tokio::test]
async fn a_command_that_is_needed_and_denied_is_named() {
    for (rules, command) in [("-sadd", "sadd"), ("-evalsha", "evalsha")] {
        let redis = redis_with(rules);
        let stage = stage_of(&redis, "needed").await;
        let enqueue = stage.client().await.enqueue(RawTask::new("kind", "x"));
        let error = enqueue.await.unwrap_err();
        let EnqueueError::Refused(source) = &error else {
            panic!("{error:?}");
        };
        let BrokerError::Denied(cause) = source else {
            panic!("{error:?}");
        };
        assert!(
            source.to_string().contains("grant the command or key"),
            "{source}"
        );
        assert!(cause.to_string().contains(command), "{cause}");
    }
}

/// What Redis 7 gives a new user: commands and keys, and no channels.
#[tokio::test]
async fn without_channels_all_is_settled_and_heard_by_looking() {
    let redis = RedisServer::start(&[("user", "limited on >secret ~* +@all")]);
    let stage = stage_of(&redis, "channels").await;
    let log = Log::default();
    let (router, mut calls) = puppet();
    let built = stage.server().build(router);
    let built = built.with_subscriber(log.subscriber()).await;
    let server = Running::start(built.expect("it can work"));
    let inspector = Inspector::connect(stage.config());
    let inspector = inspector.with_subscriber(log.subscriber()).await.unwrap();
    let control = format!("{}:control:*", stage.prefix);
    assert_eq!(log.count(&control), 2, "{:#?}", log.lines());
    assert_eq!(log.count(&stage.key("ended")), 1, "{:#?}", log.lines());

    // In one batch: they end in each way, and somebody waits for each.
    let client = stage.client().await;
    let enqueue = |n: u32| client.enqueue(task("x")).id(n.to_string()).retention(HOUR);
    join_all((0..20).map(|n| enqueue(n).into_future())).await;
    let mut running = Vec::new();
    for _ in 0..20 {
        running.push(calls.next().await);
    }
    let began = Instant::now();
    let waits = (0..20).map(|n| {
        let client = client.clone();
        tokio::spawn(async move {
            let id = n.to_string();
            let waited = client.wait::<String>("default", &id, LIMIT).await;
            waited.expect("Redis answers")
        })
    });
    let waits: Vec<_> = waits.collect();
    stage.wait_for_count("waiters", 20).await;
    // The last one is cancelled, which only a heartbeat can tell it.
    let cancelled = running.iter().position(|call| call.id() == "19").unwrap();
    let cancelled = running.remove(cancelled);
    let cancel = inspector.cancel("default", "19", CancelMode::Archive);
    assert!(matches!(
        cancel.await.unwrap(),
        ChangeOutcome::Requested { .. }
    ));
    assert_eq!(cancelled.cancelled().await, CancelReason::Requested);
    cancelled.fail("cut short");
    for call in running {
        match call.id().parse::<u32>().unwrap() % 2 {
            0 => call.complete(),
            _ => call.skip(),
        }
    }
    let waited = join_all(waits).await;
    let completed = waited
        .iter()
        .filter(|waited| matches!(waited, Ok(WaitOutcome::Completed(_))));
    assert_eq!(completed.count(), 10, "{waited:?}");
    println!("all were heard of after {:?}", began.elapsed());
    assert!(began.elapsed() < Duration::from_secs(9), "they look often");

    let stats = server.stop().await.stats;
    assert_eq!((stats.completed, stats.settles_refused), (10, 0));
    let totals = ["processed", "failed", "archived", "cancels_requested"];
    let mut counted = Vec::new();
    for name in totals {
        counted.push(stage.total(name).await);
    }
    assert_eq!(counted, [19, 9, 10, 1]);
    stage.audit().await;
}
