//! Settings of Redis that are dangerous, but no reason not to start.

use tracing::instrument::WithSubscriber;
use windlass::Router;
use windlass::task::RawTask;

use crate::fixture::Stage;
use crate::support::Log;
use crate::support::RedisServer;

/// The warnings of a server that is built on a Redis with this configuration.
async fn warnings(config: &[(&str, &str)]) -> Vec<String> {
    let redis = RedisServer::start(config);
    let stage = Stage::on(&redis, "settings").await;
    let log = Log::default();
    let router = Router::new().raw("kind", |_: RawTask| async { Ok::<_, String>(()) });
    let built = stage
        .server()
        .build(router)
        .with_subscriber(log.subscriber())
        .await;
    built.expect("it is only warned of");
    log.lines()
        .into_iter()
        .filter(|line| line.contains(" WARN "))
        .collect()
}

#[track_caller]
fn assert_one(warnings: &[String], words: &str) {
    assert_eq!(warnings.len(), 1, "{warnings:#?}");
    assert!(warnings[0].contains(words), "{warnings:#?}");
}

const APPEND: (&str, &str) = ("appendonly", "yes");
const KEEP: (&str, &str) = ("maxmemory-policy", "noeviction");

#[tokio::test]
async fn good_settings_are_passed_over() {
    assert!(warnings(&[APPEND, KEEP]).await.is_empty());
    assert!(warnings(&[("save", "60 1"), KEEP]).await.is_empty());
}

#[tokio::test]
async fn a_policy_that_throws_tasks_away_is_warned_of() {
    for policy in ["allkeys-lru", "volatile-ttl"] {
        let warnings = warnings(&[APPEND, ("maxmemory-policy", policy)]).await;
        assert_one(&warnings, &format!("maxmemory-policy is {policy}"));
        assert_one(&warnings, "set it to noeviction");
    }
}

#[tokio::test]
async fn a_redis_that_writes_nothing_to_disk_is_warned_of() {
    assert_one(&warnings(&[KEEP]).await, "a restart loses all tasks");
}
