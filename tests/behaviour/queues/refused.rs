//! A queue that Redis refuses, as in a rolling upgrade, fails alone.

use std::time::{Duration, Instant};

use windlass::Router;
use windlass::task::RawTask;

use crate::support::{LIMIT, Stage, seen, task};

#[tokio::test]
async fn the_tasks_of_other_queues_start_at_once() {
    const TASKS: u32 = 10;
    let stage = Stage::new("refused-queue").await;
    let meta = stage.key_of("newer", "meta");
    let _: () = redis::AsyncCommands::hset(&mut stage.redis(), meta, "schema", 1)
        .await
        .unwrap();
    let (says, mut starts) = seen();
    let router = Router::new().raw("kind", move |_: RawTask| {
        let said = says.send(());
        async move { said.map_err(|error| error.to_string()) }
    });
    let settings = stage.server().queues([("newer", 1), ("default", 1)]);
    let server = stage.serve_with(settings, router).await;
    let meta = stage.key_of("newer", "meta");
    let _: () = redis::AsyncCommands::hset(&mut stage.redis(), meta, "schema", 2)
        .await
        .unwrap();
    let start = Instant::now();
    for _ in 0..TASKS {
        stage.enqueue(task("x")).await;
        starts.next().await;
    }
    let each = start.elapsed() / TASKS;
    assert!(each < Duration::from_millis(400), "{each:?} a task");
    // It can be seen to live: nobody takes it for dead.
    let servers: Vec<String> = redis::AsyncCommands::zrange(
        &mut stage.redis(),
        format!("{}:servers", stage.prefix),
        0,
        -1,
    )
    .await
    .unwrap();
    assert_eq!(servers, [server.handle.id()]);
    stage.wait_until_drained("default", LIMIT).await;
    server.stop().await;
}
