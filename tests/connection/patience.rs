//! How long a Redis that is not there is waited for.

use std::time::Duration;

use tokio::time::Instant;
use windlass::client::WaitError;
use windlass::error::{BrokerError, ConnectProblem};
use windlass::task::RawTask;
use windlass::{Client, Inspector, RedisConfig, Router};

use crate::support::{LIMIT, RedisServer, Stage, within};

/// What a client, a server and an inspector that are made at the same time say.
async fn all_three(config: &RedisConfig) -> [Option<BrokerError>; 3] {
    use windlass::Server;
    use windlass::client::ClientError;
    use windlass::inspector::InspectError;
    use windlass::server::BuildError;
    let router = Router::new().raw("kind", async |_: RawTask| Ok::<_, String>(()));
    let server = Server::builder().redis(config).build(router);
    let (client, server, inspector) =
        tokio::join!(Client::connect(config), server, Inspector::connect(config));
    let client = client.err().map(|error| match error {
        ClientError::Broker(error) => error,
        error => panic!("{error:?}"),
    });
    let server = server.err().map(|error| match error {
        BuildError::Broker(error) => error,
        error => panic!("{error:?}"),
    });
    let inspector = inspector.err().map(|error| match error {
        InspectError::Broker(error) => error,
        error => panic!("{error:?}"),
    });
    [client, server, inspector]
}

#[tokio::test]
async fn a_redis_that_is_not_up_yet_is_waited_for() {
    let redis = RedisServer::start(&[]);
    let config = RedisConfig::new(redis.url());
    redis.kill();
    for error in all_three(&config).await {
        assert!(
            matches!(error, Some(BrokerError::Connect { .. })),
            "{error:?}"
        );
    }
    let config = config.wait_for_redis(LIMIT);
    let comes_up = async {
        // So that they find nothing at first.
        tokio::time::sleep(Duration::from_millis(500)).await;
        tokio::task::spawn_blocking(move || {
            redis.restart();
            redis
        })
        .await
        .unwrap()
    };
    let (_redis, errors) = tokio::join!(comes_up, within("Redis is up", LIMIT, all_three(&config)));
    assert!(errors.iter().all(Option::is_none), "{errors:?}");
}

#[tokio::test]
async fn a_redis_that_stays_away_is_waited_for_so_long() {
    const PATIENCE: Duration = Duration::from_millis(700);
    let config = RedisConfig::new("redis://127.0.0.1:1/").wait_for_redis(PATIENCE);
    let start = Instant::now();
    for error in all_three(&config).await {
        let Some(BrokerError::Connect { problem, .. }) = error else {
            panic!("{error:?}");
        };
        assert_eq!(problem, ConnectProblem::Refused);
    }
    assert!(start.elapsed() >= PATIENCE, "{:?}", start.elapsed());
    assert!(start.elapsed() < 4 * PATIENCE, "{:?}", start.elapsed());
}

#[tokio::test]
async fn a_login_that_is_refused_is_not_waited_for() {
    let redis = RedisServer::start(&[("requirepass", "right")]);
    let config = RedisConfig::new(redis.url()).wait_for_redis(10 * LIMIT);
    for error in within("all are told", LIMIT, all_three(&config)).await {
        let Some(BrokerError::Connect { problem, .. }) = error else {
            panic!("{error:?}");
        };
        assert_eq!(problem, ConnectProblem::Login);
    }
}

#[tokio::test]
async fn a_wait_is_told_at_once_that_it_is_not_allowed() {
    let user = "limited on >secret ~* &* +@all -evalsha";
    let redis = RedisServer::start(&[("user", user)]);
    let url = format!("redis://limited:secret@127.0.0.1:{}/", redis.port());
    let stage = Stage::on(&redis, "denied").await.behind(url);
    let client = Client::lazy(stage.config()).unwrap();
    let start = Instant::now();
    let waited = client.wait::<()>("default", "id", LIMIT).await;
    assert!(matches!(waited, Err(WaitError::Broker(_))), "{waited:?}");
    assert!(
        start.elapsed() < Duration::from_secs(5),
        "{:?}",
        start.elapsed()
    );
}
