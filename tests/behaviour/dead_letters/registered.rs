//! Which kinds have a hook: those that a live server has one for.

use redis::AsyncCommands;
use windlass::handler::DeadLetter;

use crate::support::{LIMIT, Stage, eventually, puppet, task};

const FIELD: &str = "hook:kind";

/// Writes by hand until when the hook of `kind` is known.
async fn register(stage: &Stage, until: u64) {
    let meta = stage.key("meta");
    let _: () = stage.redis().hset(meta, FIELD, until).await.unwrap();
}

/// Waits until it is known until a time that is ahead.
async fn until_it_is_known_for_long(stage: &Stage) {
    eventually("it is renewed", LIMIT, async || {
        let until = stage.meta(FIELD).await;
        let ahead = stage.now().await + 300_000;
        if until.is_some_and(|until| until > ahead) {
            Ok(())
        } else {
            Err(until)
        }
    })
    .await;
}

#[tokio::test]
async fn a_hook_that_no_server_renews_lapses_and_is_owed_no_longer() {
    let stage = Stage::new("lapses").await;
    let client = stage.client().await;
    // Its server is gone, for long enough.
    register(&stage, stage.now().await - 1).await;
    let (server, mut calls) = stage.serve_puppet().await;
    client.enqueue(task("x")).id("first").await.unwrap();
    calls.next().await.skip();
    stage.wait_for_state("first", "archived").await;
    eventually("it lapses", LIMIT, async || {
        let until = stage.meta(FIELD).await;
        until.map_or(Ok(()), Err)
    })
    .await;
    stage.remove("hooks").await;
    client.enqueue(task("x")).id("next").await.unwrap();
    calls.next().await.skip();
    stage.wait_for_state("next", "archived").await;
    assert_eq!(stage.count("hooks").await, 0);
    server.stop().await;
    stage.audit().await;
}

#[tokio::test]
async fn a_server_that_lives_renews_its_hooks() {
    let stage = Stage::new("renews").await;
    let router = puppet()
        .0
        .on_dead_letter("kind", async |_: DeadLetter| Ok::<_, String>(()));
    let server = stage.serve(router).await;
    until_it_is_known_for_long(&stage).await;
    register(&stage, stage.now().await).await;
    until_it_is_known_for_long(&stage).await;
    server.stop().await;
}

#[tokio::test]
async fn what_a_server_of_0_1_has_registered_gets_a_time() {
    let stage = Stage::new("of-0.1").await;
    let client = stage.client().await;
    register(&stage, 1).await;
    let (server, mut calls) = stage.serve_puppet().await;
    client.enqueue(task("x")).id("dead").await.unwrap();
    calls.next().await.skip();
    until_it_is_known_for_long(&stage).await;
    assert_eq!(stage.ids("hooks").await, ["dead"]);
    server.stop().await;
}
