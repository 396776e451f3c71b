//! All that `ServerBuilder::build` refuses before it looks for Redis.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use windlass::client::ClientError;
use windlass::handler::RouterError;
use windlass::inspector::InspectError;
use windlass::server::{BuildError, ServerBuilder};
use windlass::task::RawTask;
use windlass::{Client, Inspector, RedisConfig, Router, Server, State, Task};

async fn raw(_: RawTask) -> Result<(), String> {
    Ok(())
}

fn router() -> Router {
    Router::new().raw("kind", raw)
}

const NOWHERE: &str = "redis://127.0.0.1:1/";

/// The error of a builder. Where it would look for Redis, there is none.
async fn refused(
    builder: ServerBuilder,
    redis: impl Into<RedisConfig>,
    router: Router,
) -> BuildError {
    let built = builder.redis(redis).build(router).await;
    let error = built.expect_err("it is refused");
    assert!(!matches!(error, BuildError::Broker(_)), "{error}");
    error
}

#[tokio::test]
async fn a_setting_that_cannot_be_used_is_named() {
    const MS: Duration = Duration::from_millis(1);
    const SECOND: Duration = Duration::from_secs(1);
    let new = Server::builder;
    let nothing: [(&str, u32); 0] = [];
    let cases: Vec<(ServerBuilder, &str)> = vec![
        (new().queues(nothing), "no queue: name at least one"),
        (new().queues([("", 1)]), "queue \"\" is blank"),
        (new().queues([("a{b", 1)]), "queue \"a{b\" holds '{'"),
        (
            new().queues([("a", 1), ("b", 0)]),
            "queue \"b\" has weight 0",
        ),
        (
            new().queues([("a", 1), ("b", 1), ("a", 2)]),
            "queue \"a\" is named twice",
        ),
        (new().concurrency(0), "concurrency is 0"),
        (new().concurrency(usize::MAX), "is too high: give at most"),
        (new().lease(SECOND - MS), "a lease of 999ms is too short"),
        (new().lease(Duration::ZERO), "a lease of 0ns is too short"),
        (
            new().lease(3 * SECOND).heartbeat(SECOND + MS),
            "a heartbeat of 1.001s is too slow for a lease of 3s",
        ),
        (new().heartbeat(Duration::ZERO), "heartbeat is zero"),
        (new().scan_interval(Duration::ZERO), "scan_interval is zero"),
        (
            new().scan_interval(24 * SECOND),
            "a scan_interval of 24s is too long for leases of 30s: give at most 23s",
        ),
        (
            new().sweep_interval(Duration::ZERO),
            "sweep_interval is zero",
        ),
        (new().lease(Duration::MAX), "lease is longer than 100 years"),
        (
            new().scan_interval(Duration::MAX),
            "scan_interval is longer",
        ),
        (
            new().sweep_interval(Duration::MAX),
            "sweep_interval is longer",
        ),
        (new().clock_skew(Duration::MAX), "clock_skew is longer"),
        (new().cancel_grace(Duration::MAX), "cancel_grace is longer"),
        (
            new().shutdown_grace(Duration::MAX),
            "shutdown_grace is longer",
        ),
        (
            new().archive_limits(1, Duration::MAX),
            "archive_limits is longer",
        ),
        (new().kept_memory(-0.1), "a kept_memory of -0.1"),
        (new().kept_memory(1.5), "a kept_memory of 1.5"),
        (new().kept_memory(f64::NAN), "a kept_memory of NaN"),
    ];
    for (builder, words) in cases {
        let message = refused(builder, NOWHERE, router()).await.to_string();
        assert!(message.contains(words), "{words}: {message}");
    }
}

#[tokio::test]
async fn a_connection_that_cannot_be_used_is_named_by_all_who_take_it() {
    let new = || RedisConfig::new(NOWHERE);
    let (zero, ever) = (Duration::ZERO, Duration::MAX);
    let cases = [
        (new().prefix(""), "prefix \"\" is blank"),
        (new().prefix("a:b"), "prefix \"a:b\" holds ':'"),
        (
            new().connect_timeout(zero),
            "connect_timeout is too short: give at least 1ms",
        ),
        (
            new().command_timeout(Duration::from_nanos(1)),
            "command_timeout is too short: give at least 1ms",
        ),
        (
            new().tcp_keepalive(Duration::from_secs(2)),
            "tcp_keepalive is too short: give at least 3s",
        ),
        (
            new().tcp_user_timeout(zero),
            "tcp_user_timeout is too short",
        ),
        (
            new().connect_timeout(ever),
            "connect_timeout is longer than 100 years",
        ),
        (new().command_timeout(ever), "command_timeout is longer"),
        (new().tcp_keepalive(ever), "tcp_keepalive is longer"),
        (new().tcp_user_timeout(ever), "tcp_user_timeout is longer"),
    ];
    for (config, words) in cases {
        let server = refused(Server::builder(), &config, router()).await;
        let client = Client::lazy(&config).expect_err(words);
        let inspector = Inspector::connect(&config).await.expect_err(words);
        assert!(matches!(server, BuildError::Config(_)), "{server:?}");
        assert!(matches!(client, ClientError::Config(_)), "{client:?}");
        assert!(
            matches!(inspector, InspectError::Config(_)),
            "{inspector:?}"
        );
        for said in [
            server.to_string(),
            client.to_string(),
            inspector.to_string(),
        ] {
            assert!(said.contains(words), "{words}: {said}");
        }
    }
}

#[tokio::test]
async fn settings_at_their_limits_are_taken() {
    const THIRD: Duration = Duration::from_secs(1);
    for builder in [
        Server::builder().lease(3 * THIRD).heartbeat(THIRD),
        Server::builder().lease(Duration::from_secs(1)),
        Server::builder().concurrency(1).clock_skew(Duration::ZERO),
        Server::builder()
            .shutdown_grace(Duration::ZERO)
            .cancel_grace(Duration::ZERO),
    ] {
        let built = builder.redis(NOWHERE).build(router()).await;
        // All that is wrong is that nobody listens there.
        assert!(matches!(built, Err(BuildError::Broker(_))), "{built:?}");
    }
}

#[derive(Serialize, Deserialize)]
struct Typed;

impl Task for Typed {
    const KIND: &'static str = "typed";
}

#[derive(Clone)]
struct Database;

#[tokio::test]
async fn a_router_that_cannot_be_used_is_named() {
    async fn typed(_: Typed) -> Result<(), String> {
        Ok(())
    }
    async fn needy(_: Typed, _: State<Database>) -> Result<(), String> {
        Ok(())
    }
    let cases = [
        (Router::new(), "no handler: add one"),
        (Router::new().state(Database), "no handler: add one"),
        (router().raw("a\nb", raw), "kind \"a\\nb\" holds '\\n'"),
        (router().raw("", raw), "kind \"\" is blank"),
        (
            router().raw("kind", raw),
            "two handlers for the kind \"kind\"",
        ),
        (
            Router::new().task(typed).raw("typed", raw),
            "two handlers for the kind \"typed\"",
        ),
        (router().fallback(raw).fallback(raw), "two fallbacks"),
        (
            Router::new().task(needy),
            "the handler for \"typed\" asks for `State<",
        ),
        (
            Router::new().task(needy),
            "Database>`, which the router does not have: add it",
        ),
    ];
    for (router, words) in cases {
        let error = refused(Server::builder(), NOWHERE, router).await;
        assert!(matches!(error, BuildError::Router(_)), "{error:?}");
        assert!(error.to_string().contains(words), "{words}: {error}");
    }
    let twice = refused(
        Server::builder(),
        NOWHERE,
        Router::new().task(typed).task(typed),
    )
    .await;
    assert!(matches!(
        twice,
        BuildError::Router(RouterError::TwoHandlers { kind, .. }) if kind == "typed"
    ));
}
