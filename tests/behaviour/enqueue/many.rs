//! Many tasks in one call of the client: one result for each, in order.

use redis::AsyncCommands;
use windlass::client::{EnqueueError, EnqueueOutcome, Enqueued};
use windlass::task::RawTask;
use windlass::{Client, NewTask};

use crate::support::{RedisServer, Stage, calls_of};

fn task(payload: impl Into<Vec<u8>>) -> NewTask {
    NewTask::from(RawTask::new("many", payload))
}

/// The answers, each of which must be one of Redis.
async fn answered(client: &Client, tasks: Vec<NewTask>) -> Vec<Enqueued> {
    let results = client.enqueue_many(tasks).await;
    results.into_iter().map(Result::unwrap).collect()
}

#[tokio::test]
async fn nothing_to_enqueue_sends_nothing() {
    let redis = RedisServer::start(&[]);
    let stage = Stage::on(&redis, "empty").await;
    let client = stage.client().await;
    assert!(client.enqueue_many(Vec::<NewTask>::new()).await.is_empty());
    let keys: Vec<String> = stage.redis().keys("*").await.unwrap();
    assert!(keys.is_empty(), "{keys:?}");
    assert_eq!(calls_of(&mut stage.redis(), "evalsha").await, 0);
}

#[tokio::test]
async fn bad_tasks_do_not_stop_the_good_ones() {
    let stage = Stage::new("mixed").await;
    let client = stage.client().await;
    let tasks = [
        task("a").id("a"),
        task("b").id("b").priority(10),
        task("c").id("c").queue("mail"),
        task("d").id("d").queue("{}"),
        task("e").id("e"),
        task(vec![0; 2 << 20]).id("f"),
        task("g").id("g").queue("mail"),
    ];
    let results = client.enqueue_many(tasks).await;
    let outline: Vec<_> = results
        .iter()
        .map(|result| match result {
            Ok(enqueued) => enqueued.id.as_str(),
            Err(EnqueueError::Invalid(_)) => "invalid",
            Err(other) => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(
        outline,
        ["a", "invalid", "c", "invalid", "e", "invalid", "g"]
    );
    assert_eq!(stage.ids("pending").await, ["a", "e"]);
    assert_eq!(stage.count_of("mail", "pending").await, 2);
    stage.audit().await;
}

#[tokio::test]
async fn a_list_longer_than_a_call_keeps_its_order() {
    let redis = RedisServer::start(&[]);
    let stage = Stage::on(&redis, "long").await;
    let client = stage.client().await;
    let tasks = (0..1_234).map(|i| task("x").id(format!("{i:04}")));
    let answers = answered(&client, tasks.collect()).await;
    let ids: Vec<_> = answers.iter().map(|enqueued| enqueued.id.clone()).collect();
    assert_eq!(ids.len(), 1_234);
    assert!(ids.is_sorted() && answers.iter().all(Enqueued::is_new));
    assert_eq!(stage.ids("pending").await, ids);
    // 500, 500 and 234; one more for each script that Redis did not know yet.
    let calls = calls_of(&mut stage.redis(), "evalsha").await;
    assert!((3..=4).contains(&calls), "{calls}");
    stage.audit().await;
}

#[tokio::test]
async fn a_list_with_more_bytes_than_a_call_may_have_goes_in_several() {
    let redis = RedisServer::start(&[]);
    let stage = Stage::on(&redis, "bytes").await;
    let client = stage.client().await;
    // Two of 400 KiB fit into a call of 1 MiB, three do not; one of 1 MiB goes alone.
    let sizes = [400, 400, 400, 400, 400, 1_024, 1_024];
    let tasks = sizes.map(|kib| task(vec![b'x'; kib << 10]));
    let answers = answered(&client, tasks.into()).await;
    assert!(answers.iter().all(Enqueued::is_new));
    let calls = calls_of(&mut stage.redis(), "evalsha").await;
    assert!((5..=6).contains(&calls), "{calls}");
    for (answer, kib) in answers.iter().zip(sizes) {
        assert_eq!(stage.record(&answer.id).await["payload"].len(), kib << 10);
    }
}

#[tokio::test]
async fn of_equal_ids_the_first_is_enqueued() {
    use EnqueueOutcome::{Exists, New};
    let stage = Stage::new("duplicates").await;
    let client = stage.client().await;
    client.enqueue(task("old")).id("old").await.unwrap();
    let tasks = [
        ("old", "again"),
        ("a", "first"),
        ("a", "second"),
        ("b", "only"),
        ("a", "third"),
        ("old", "once more"),
    ];
    let tasks = tasks.map(|(id, payload)| task(payload).id(id));
    let answers = answered(&client, tasks.into()).await;
    let outcomes: Vec<_> = answers.iter().map(|enqueued| enqueued.outcome).collect();
    assert_eq!(outcomes, [Exists, New, Exists, New, Exists, Exists]);
    for (id, payload) in [("old", "old"), ("a", "first"), ("b", "only")] {
        assert_eq!(stage.record(id).await["payload"], payload, "{id}");
    }
    assert_eq!(stage.ids("pending").await, ["old", "a", "b"]);
    assert_eq!(
        (
            stage.total("enqueued").await,
            stage.total("duplicates").await
        ),
        (3, 4)
    );
    stage.audit().await;
}

#[tokio::test]
async fn equal_ids_in_different_calls_of_a_list_are_found() {
    let stage = Stage::new("far").await;
    let client = stage.client().await;
    let mut tasks: Vec<_> = (0..700).map(|i| task("x").id(i.to_string())).collect();
    tasks.push(task("y").id("0"));
    tasks.push(task("y").id("699"));
    let answers = answered(&client, tasks).await;
    let old: Vec<_> = (0..702).filter(|&i| !answers[i].is_new()).collect();
    assert_eq!(old, [700, 701]);
    assert_eq!(stage.record("0").await["payload"], "x");
}
