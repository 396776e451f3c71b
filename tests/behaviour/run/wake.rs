//! How soon a task is picked up.

use std::time::Duration;

use tokio::time::Instant;
use windlass::task::RawTask;
use windlass::{NewTask, Router, TaskContext};

use crate::support::{LIMIT, Stage, eventually, seen};

/// Well below the interval of the poll that stands behind the wake-up, which is 0.8 to 1 s.
const AT_ONCE: Duration = Duration::from_millis(400);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_idle_server_picks_up_a_task_in_milliseconds() {
    let stage = Stage::new("pickup").await;
    let client = stage.client().await;
    let (says, mut starts) = seen();
    let router = Router::new().raw("kind", move |_: RawTask| {
        let said = says.send(Instant::now());
        async move { said.map_err(|error| error.to_string()) }
    });
    let server = stage.serve_with(stage.server(), router).await;
    let mut pickups = Vec::new();
    for _ in 0..100 {
        let start = Instant::now();
        client.enqueue(RawTask::new("kind", "x")).await.unwrap();
        pickups.push(starts.next().await - start);
    }
    pickups.sort_unstable();
    println!("picked up: median {:?}, p99 {:?}", pickups[50], pickups[98]);
    assert!(pickups[50] < Duration::from_millis(20), "{:?}", pickups[50]);
    assert!(pickups[98] < AT_ONCE, "{:?}", pickups[98]);
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_one_server_has_no_room_for_wakes_a_second_at_once() {
    let stage = Stage::new("second").await;
    let client = stage.client().await;
    let (says, mut starts) = seen();
    let (go_on, wait) = tokio::sync::watch::channel(0);
    let router = Router::new().raw("kind", move |_: RawTask, context: TaskContext| {
        let (says, mut wait) = (says.clone(), wait.clone());
        async move {
            let round: u32 = context.id().split(' ').next().unwrap_or_default().parse()?;
            says.send((Instant::now(), context.server_id().to_owned()))?;
            wait.wait_for(|now| *now > round).await?;
            Ok::<_, anyhow::Error>(())
        }
    });
    let settings = || stage.server().concurrency(4);
    let one = stage.serve_with(settings(), router.clone()).await;
    let two = stage.serve_with(settings(), router).await;
    let mut slowest = Duration::ZERO;
    for round in 0..10 {
        let tasks =
            (0..8).map(|i| NewTask::from(RawTask::new("kind", "x")).id(format!("{round} {i}")));
        let start = Instant::now();
        assert!(client.enqueue_many(tasks).await.iter().all(Result::is_ok));
        // No handler ends before all have started, so both servers must be full.
        let starts = starts.take(8).await;
        slowest = slowest.max(starts.iter().map(|(at, _)| *at - start).max().unwrap());
        let of_one = starts
            .iter()
            .filter(|(_, server)| server == one.handle.id());
        assert_eq!(of_one.count(), 4);
        go_on.send(round + 1).unwrap();
        eventually("both are idle", LIMIT, async || {
            let left = one.handle.running() + two.handle.running();
            if left == 0 { Ok(()) } else { Err(left) }
        })
        .await;
    }
    println!("8 tasks on two servers of 4 have started after {slowest:?} at most");
    assert!(slowest < AT_ONCE, "{slowest:?}");
    one.stop().await;
    two.stop().await;
}
