//! Enqueues that happen at the same time share their calls, and do not depend on one another.

use std::time::Duration;

use futures::FutureExt;
use futures::future::join_all;
use windlass::task::RawTask;

use crate::support::{LIMIT, RedisServer, Stage, calls_of, within};

const TASKS: usize = 2_000;

fn task() -> RawTask {
    RawTask::new("joined", "x")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn concurrent_enqueues_are_joined() {
    let redis = RedisServer::start(&[]);
    let stage = Stage::on(&redis, "joined").await;
    let client = stage.client().await;
    let enqueues = (0..TASKS).map(|i| {
        let queue = if i % 4 == 0 { "other" } else { "default" };
        tokio::spawn(client.enqueue(task()).queue(queue).send())
    });
    for enqueued in join_all(enqueues).await {
        assert!(enqueued.unwrap().unwrap().is_new());
    }
    let calls = calls_of(&mut stage.redis(), "evalsha").await;
    println!("{TASKS} concurrent enqueues in {calls} calls");
    assert!(calls <= TASKS as u64 / 10, "{calls}");
    let counts = (
        stage.count("pending").await,
        stage.count_of("other", "pending").await,
    );
    assert_eq!(counts, (TASKS * 3 / 4, TASKS / 4));
    stage.audit().await;
}

#[tokio::test]
async fn of_joined_equal_ids_one_is_new() {
    let stage = Stage::new("one-new").await;
    let client = stage.client().await;
    let same = || client.enqueue(task()).id("same").send();
    let answers = join_all((0..100).map(|_| same())).await;
    let new = answers
        .iter()
        .filter(|answer| answer.as_ref().unwrap().is_new());
    assert_eq!(new.count(), 1);
}

#[tokio::test]
async fn a_dropped_enqueue_does_not_hold_up_the_others() {
    let redis = RedisServer::start(&[]);
    let stage = Stage::on(&redis, "dropped").await;
    let client = stage.client().await;
    client.enqueue(task()).id("warm").await.unwrap();
    redis.pause();
    let mut sending = Box::pin(client.enqueue(task()).id("sending").send());
    assert!(
        (&mut sending).now_or_never().is_none(),
        "Redis does not answer"
    );
    let mut waiting = Box::pin(client.enqueue(task()).id("waiting").send());
    assert!(
        (&mut waiting).now_or_never().is_none(),
        "it waits for the first"
    );
    let kept = tokio::spawn(client.enqueue(task()).id("kept").send());
    tokio::task::yield_now().await;
    drop((sending, waiting));
    redis.resume();
    let enqueued = within("the one that was kept is answered", LIMIT, kept).await;
    assert!(enqueued.unwrap().unwrap().is_new());
    // A dropped one may be there, but not by halves.
    stage.audit().await;
}

#[tokio::test]
async fn an_enqueue_that_is_not_polled_any_more_holds_up_no_other() {
    let stage = Stage::new("unpolled").await;
    let client = stage.client().await;
    client.enqueue(task()).id("warm").await.unwrap();
    let mut first = Box::pin(client.enqueue(task()).id("first").send());
    assert!((&mut first).now_or_never().is_none(), "it is on its way");
    let others = join_all((0..10).map(|_| client.enqueue(task()).send()));
    for enqueued in within("the others are answered", LIMIT, others).await {
        assert!(enqueued.unwrap().is_new());
    }
    let first = within("so is the first", LIMIT, first).await;
    assert!(first.unwrap().is_new());
}

#[tokio::test]
async fn an_enqueue_that_is_given_up_does_not_stop_the_next() {
    let redis = RedisServer::start(&[]);
    let stage = Stage::on(&redis, "given-up").await;
    let client = stage.client().await;
    for round in 0..50 {
        let enqueue = client.enqueue(task()).id(format!("{round}")).send();
        let _ = tokio::time::timeout(Duration::from_micros(round * 20), enqueue).await;
    }
    let last = client.enqueue(task()).id("last").send();
    let last = within("the last is answered", LIMIT, last).await;
    assert!(last.unwrap().is_new());
    stage.audit().await;
}
