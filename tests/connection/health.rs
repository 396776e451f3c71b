//! What a server says of itself.

use std::time::Duration;

use tokio::time::{Instant, sleep};
use windlass::{Problem, RawTask, Router};

use crate::fixture::{LIMIT, Stage};
use crate::seen::seen;
use crate::support::{RedisServer, eventually};

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
        let unheard = |problem: &Problem| matches!(problem, Problem::NoClaim(_));
        let heard = !health().problems.iter().any(unheard);
        if heard { Err(health()) } else { Ok(()) }
    })
    .await;
    redis.resume();
    eventually("it is well again", LIMIT, well).await;
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
