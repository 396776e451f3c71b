//! Queues that come and go while a server runs.

use windlass::server::QueueError;
use windlass::task::RawTask;
use windlass::{Router, TaskContext};

use crate::support::{LIMIT, Stage, eventually, seen};

#[tokio::test]
async fn a_queue_can_be_added_and_removed() {
    let stage = Stage::new("queues").await;
    let client = stage.client().await;
    let (says, mut queues) = seen();
    let router = Router::new().raw("kind", move |_: RawTask, context: TaskContext| {
        let said = says.send(context.queue().to_owned());
        async move { said.map_err(|error| error.to_string()) }
    });
    let settings = stage.server().queues([("a", 1)]);
    let server = stage.serve_with(settings, router).await;
    let enqueue = |queue: &'static str| client.enqueue(RawTask::new("kind", "x")).queue(queue);

    enqueue("b").await.unwrap();
    enqueue("a").await.unwrap();
    assert_eq!(queues.next().await, "a");
    assert_eq!(stage.count_of("b", "pending").await, 1);

    server.handle.add_queue("b", 1).unwrap();
    assert_eq!(queues.next().await, "b");

    assert!(server.handle.remove_queue("a") && !server.handle.remove_queue("a"));
    // A wait for work that was on its way may still wake up for the old queue.
    eventually("the removed queue is left alone", LIMIT, async || {
        enqueue("a").await.unwrap();
        enqueue("b").await.unwrap();
        while queues.next().await != "b" {}
        (stage.count_of("a", "pending").await > 0).then_some(())
    })
    .await;
    assert!(server.handle.remove_queue("b"));
    server.handle.add_queue("a", 5).unwrap();
    eventually("the queue is served again", LIMIT, async || {
        let left = stage.count_of("a", "pending").await;
        if left == 0 { Ok(()) } else { Err(left) }
    })
    .await;
    server.stop().await;
}

#[tokio::test]
async fn tasks_of_a_removed_queue_that_run_go_on() {
    let stage = Stage::new("removed").await;
    let (starts, mut started) = seen();
    let (go_on, wait) = tokio::sync::watch::channel(false);
    let router = Router::new().raw("kind", move |_: RawTask| {
        let (starts, mut wait) = (starts.clone(), wait.clone());
        async move {
            let _ = starts.send(());
            wait.wait_for(|go| *go).await.map(drop)
        }
    });
    let server = stage.serve_with(stage.server(), router).await;
    let client = stage.client().await;
    let id = client.enqueue(RawTask::new("kind", "x")).await.unwrap().id;
    started.next().await;
    assert!(server.handle.remove_queue("default"));
    go_on.send(true).unwrap();
    stage.wait_for_state(&id, "gone").await;
    let report = server.stop().await;
    assert_eq!(
        (report.stats.completed, report.stats.settles_refused),
        (1, 0)
    );
}

#[tokio::test]
async fn a_queue_that_cannot_be_served_is_refused() {
    let stage = Stage::new("bad-queue").await;
    let router = Router::new().raw("kind", |_: RawTask| async { Ok::<_, String>(()) });
    let server = stage.server().build(router).await.unwrap();
    let handle = server.handle();
    assert_eq!(
        handle.add_queue("x", 0),
        Err(QueueError::ZeroWeight("x".into()))
    );
    assert_eq!(
        handle.add_queue("default", 1),
        Err(QueueError::Twice("default".into()))
    );
    assert!(matches!(
        handle.add_queue("a:b", 1),
        Err(QueueError::Name(_))
    ));
}
