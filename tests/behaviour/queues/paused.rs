//! A paused queue is left alone.

use redis::AsyncCommands;
use windlass::task::RawTask;
use windlass::{Router, TaskContext};

use crate::support::{Stage, seen};

#[tokio::test]
async fn a_paused_queue_is_left_alone_until_it_goes_on() {
    let stage = Stage::new("paused").await;
    let client = stage.client().await;
    let meta = stage.key_of("slow", "meta");
    let _: () = stage.redis().hset(&meta, "paused", 1).await.unwrap();
    let (says, mut queues) = seen();
    let router = Router::new().raw("kind", move |_: RawTask, context: TaskContext| {
        let said = says.send(context.queue().to_owned());
        async move { said.map_err(|error| error.to_string()) }
    });
    let settings = stage.server().queues([("slow", 9), ("fast", 1)]);
    let server = stage.serve_with(settings, router).await;
    for _ in 0..20 {
        for queue in ["slow", "fast"] {
            let task = RawTask::new("kind", "x");
            client.enqueue(task).queue(queue).await.unwrap();
        }
    }
    assert_eq!(queues.take(20).await, ["fast"; 20]);
    assert_eq!(stage.count_of("slow", "pending").await, 20);
    let _: () = stage.redis().hdel(&meta, "paused").await.unwrap();
    assert_eq!(queues.take(20).await, ["slow"; 20]);
    server.stop().await;
}
