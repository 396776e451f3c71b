//! What a server says of itself.

use std::time::Duration;

use tokio::time::{Instant, sleep};
use windlass::Router;
use windlass::server::{HealthProblem, Phase, ServerHandle};
use windlass::task::RawTask;

use crate::support::Log;
use crate::support::{LIMIT, RedisServer, Running, Stage, eventually, puppet, seen, task};

#[tokio::test]
async fn a_claimer_that_hears_nothing_from_redis_is_a_problem() {
    let redis = RedisServer::start(&[]);
    let stage = Stage::on(&redis, "unheard").await;
    let router = Router::new().raw("kind", async |_: RawTask| Ok::<_, String>(()));
    let server = stage.serve_with(stage.server(), router).await;
    let health = || server.handle.health();
    let well = async || health().is_healthy().then_some(()).ok_or(health());
    eventually("it is well", LIMIT, well).await;
    redis.pause();
    eventually("nothing is heard", LIMIT, async || {
        let unheard = |problem: &HealthProblem| matches!(problem, HealthProblem::NoClaim(_));
        let heard = !health().problems.iter().any(unheard);
        if heard { Err(health()) } else { Ok(()) }
    })
    .await;
    redis.resume();
    eventually("it is well again", LIMIT, well).await;
    server.stop().await;
}

/// What its probes say.
fn probes(handle: &ServerHandle) -> (Phase, Live, Ready) {
    let (live, ready) = (handle.is_live(), handle.is_ready());
    (handle.phase(), Live(live), Ready(ready))
}

#[derive(Debug, PartialEq)]
struct Live(bool);

#[derive(Debug, PartialEq)]
struct Ready(bool);

async fn wait_for_probes(handle: &ServerHandle, phase: Phase, ready: bool) {
    let wanted = (phase, Live(true), Ready(ready));
    eventually(&format!("{wanted:?}"), LIMIT, async || {
        let said = probes(handle);
        if said == wanted {
            Ok(())
        } else {
            Err((said, handle.health().problems))
        }
    })
    .await;
}

#[tokio::test]
async fn probes_tell_what_a_server_does_and_that_redis_is_away() {
    let redis = RedisServer::start(&[]);
    let stage = Stage::on(&redis, "probes").await;
    let (router, mut calls) = puppet();
    let server = stage.server().build(router).await.unwrap();
    let handle = server.handle();
    let starting = (Phase::Starting, Live(true), Ready(false));
    assert_eq!(probes(&handle), starting);
    let server = Running::start(server);
    wait_for_probes(&handle, Phase::Running, true).await;

    redis.pause();
    wait_for_probes(&handle, Phase::Running, false).await;
    redis.resume();
    wait_for_probes(&handle, Phase::Running, true).await;

    handle.quiet();
    assert_eq!(probes(&handle), (Phase::Quiet, Live(true), Ready(false)));
    handle.resume();
    wait_for_probes(&handle, Phase::Running, true).await;

    stage.client().await.enqueue(task("x")).await.unwrap();
    let call = calls.next().await;
    handle.stop();
    assert_eq!(probes(&handle), (Phase::Stopping, Live(true), Ready(false)));
    call.complete();
    server.end().await;
    let stopped = (Phase::Stopped, Live(true), Ready(false));
    assert_eq!(probes(&handle), stopped);
    assert_eq!(handle.health().problems, []);
}

#[tokio::test]
async fn a_server_says_once_what_it_serves_and_where() {
    let stage = Stage::new("serves").await;
    let log = Log::default();
    let _logging = tracing::subscriber::set_default(log.subscriber());
    let (router, _calls) = puppet();
    let router = router.raw("another", async |_: RawTask| Ok::<_, String>(()));
    let queues = [("mail", 2), ("reports", 1)];
    let server = stage.serve_with(stage.server().queues(queues), router);
    server.await.stop().await;
    let line = log
        .lines()
        .into_iter()
        .find(|it| it.contains("the server starts"));
    let line = line.expect("it says that it starts");
    for part in [
        r#"queues=["mail", "reports"]"#,
        r#"kinds=["another", "kind"]"#,
        &format!("redis.version=\"{}\"", version(&stage).await),
        "redis.address=\"",
    ] {
        assert!(line.contains(part), "{part} in {line}");
    }
    assert_eq!(log.count("the server starts"), 1);
}

async fn version(stage: &Stage) -> String {
    let mut redis = stage.redis();
    let mut ask = redis::cmd("INFO");
    let info = ask.arg("server").query_async(&mut redis).await;
    let info: redis::InfoDict = info.unwrap();
    info.get("redis_version").unwrap()
}

/// A server that starts without a Redis waits for it.
#[tokio::test]
async fn a_server_whose_redis_goes_before_it_runs_starts_until_redis_is_back() {
    let redis = RedisServer::start(&[]);
    let stage = Stage::on(&redis, "late").await;
    let (router, _calls) = puppet();
    let server = stage.server().build(router).await.unwrap();
    let handle = server.handle();
    redis.pause();
    let server = Running::start(server);
    let unheard = |problem: &HealthProblem| matches!(problem, HealthProblem::NoClaim(_));
    eventually("nothing is heard", LIMIT, async || {
        let problems = handle.health().problems;
        problems.iter().any(unheard).then_some(()).ok_or(problems)
    })
    .await;
    let starting = (Phase::Starting, Live(true), Ready(false));
    assert_eq!(probes(&handle), starting);
    redis.resume();
    wait_for_probes(&handle, Phase::Running, true).await;
    server.stop().await;
}

#[tokio::test]
async fn a_server_whose_slots_are_all_taken_is_well() {
    /// Longer than a claimer may hear nothing from Redis.
    const BUSY: Duration = Duration::from_secs(6);
    let stage = Stage::new("busy").await;
    let (says, mut starts) = seen();
    let (release, released) = tokio::sync::watch::channel(false);
    let router = Router::new().raw("kind", move |_: RawTask| {
        let (said, mut released) = (says.send(()), released.clone());
        async move {
            said.map_err(|error| error.to_string())?;
            let go_on = released.wait_for(|go_on| *go_on).await;
            go_on.map(drop).map_err(|error| error.to_string())
        }
    });
    let server = stage
        .serve_with(stage.server().concurrency(1), router)
        .await;
    let client = stage.client().await;
    client.enqueue(RawTask::new("kind", "x")).await.unwrap();
    starts.next().await;
    let end = Instant::now() + BUSY;
    while Instant::now() < end {
        let health = server.handle.health();
        assert!(health.is_healthy(), "{health:?}");
        // A pace: it must be well all the time.
        sleep(Duration::from_millis(50)).await;
    }
    release.send(true).unwrap();
    server.stop().await;
}
