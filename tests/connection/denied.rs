//! Commands that the Redis user may not use.

use tracing::instrument::WithSubscriber;
use windlass::{BrokerError, EnqueueError, RawTask, Router};

use crate::fixture::Stage;
use crate::log::Log;
use crate::seen::seen;
use crate::support::RedisServer;

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
