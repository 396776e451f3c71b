//! Which kinds have a hook: those that a live server has one for.

use redis::AsyncCommands;
use windlass::handler::DeadLetter;
use windlass::server::ServerBuilder;
use windlass::task::RawTask;

use super::hooked;
use crate::support::{HOUR, LIMIT, Running, Stage, eventually, puppet, task};

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

/// Settings of a server whose heartbeats will not come for long.
fn without_heartbeats(stage: &Stage) -> ServerBuilder {
    let settings = stage.server().lease(3 * HOUR).heartbeat(HOUR);
    settings.queues([("first", 1)]).max_lost_leases(1)
}

#[tokio::test]
async fn a_hook_is_known_in_a_queue_that_is_added_before_anything_dies_there() {
    let stage = Stage::new("added").await;
    let client = stage.client().await;
    let (router, mut calls) = puppet();
    let (router, mut letters) = hooked(router, "kind");
    let server = stage.serve_with(without_heartbeats(&stage), router).await;
    // This one is archived by its claim.
    let late = task("late").deadline(std::time::UNIX_EPOCH);
    client.enqueue(late).id("late").await.unwrap();
    server.handle.add_queue("default", 1).unwrap();
    let letter = letters.next().await;
    assert_eq!(letter.letter.id, "late");
    letter.done();

    // Somebody has emptied Redis.
    stage.remove("meta").await;
    client.enqueue(task("x")).id("dead").await.unwrap();
    calls.next().await.skip();
    let letter = letters.next().await;
    assert_eq!(letter.letter.id, "dead");
    letter.done();
    server.stop().await;
    stage.audit().await;
}

#[tokio::test]
async fn a_lost_lease_in_a_queue_that_is_added_owes_its_hook_too() {
    let stage = Stage::new("added-lost").await;
    let (router, _calls) = puppet();
    let (router, mut letters) = hooked(router, "kind");
    // It claims nothing, so it hears of the queue as one who recovers only.
    let settings = without_heartbeats(&stage);
    let server = Running::start_quiet(settings, router).await;
    stage.enqueue(RawTask::new("kind", "x")).await;
    let id = &stage.ids("pending").await[0];
    stage.lose(id).await;
    // So that it needs no grace.
    let now = stage.now().await;
    let meta = stage.key("meta");
    let _: () = stage.redis().hset(meta, "pulse", now).await.unwrap();
    server.handle.add_queue("default", 1).unwrap();
    let letter = letters.next().await;
    assert_eq!(&letter.letter.id, id);
    letter.done();
    server.stop().await;
    stage.audit().await;
}
