//! Delayed tasks run when they are due: never early, and soon.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use tokio::sync::mpsc::unbounded_channel;
use windlass::task::RawTask;
use windlass::{Router, Server, TaskContext};

use crate::support::{Lag, RedisServer, Stage, ms, task, within};

/// 50 ms, and as much as this machine itself was late: for Redis, for the server's part that sleeps,
/// for the one that claims, and for the handler.
fn assert_hardly_late(late: Duration, lag: Lag) {
    let lag = lag.end();
    assert!(
        late < ms(50) + 4 * lag,
        "{late:?}, on a machine that was late by {lag:?}"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_thousand_delays_are_kept() {
    let redis = RedisServer::start(&[]);
    let stage = Stage::on(&redis, "lateness").await;
    let client = stage.client().await;
    let (says, mut said) = unbounded_channel();
    let handler = move |_: RawTask, context: TaskContext| {
        // Its clock is that of Redis, which runs on the same machine.
        let _ = says.send((context.id().to_owned(), SystemTime::now()));
        async { Ok::<_, String>(()) }
    };
    let settings = Server::builder().redis(stage.config());
    let server = stage
        .serve_with(settings, Router::new().raw("kind", handler))
        .await;
    let delay = |n: u64| ms(100 + n * 4_900 / 999);
    let tasks = (0..1000).map(|n| task("x").id(n.to_string()).delay(delay(n)));
    let before = SystemTime::now();
    assert!(client.enqueue_many(tasks).await.iter().all(Result::is_ok));
    let after = SystemTime::now();
    // They went in two calls, each with a time of its own: that of its last task tells it.
    let mut enqueued = Vec::new();
    for last in [499, 999] {
        let due = stage.score("scheduled", &last.to_string()).await;
        let due = UNIX_EPOCH + ms(due.expect("it is seconds away"));
        enqueued.push(due - delay(last));
        assert!((before..after + ms(1)).contains(&enqueued[enqueued.len() - 1]));
    }

    let lag = Lag::start();
    let mut late = Vec::new();
    for _ in 0..1000 {
        let run = within("a task runs", Duration::from_secs(60), said.recv());
        let (id, ran) = run.await.unwrap();
        let n: u64 = id.parse().unwrap();
        let due = enqueued[n as usize / 500] + delay(n);
        late.push(ran.duration_since(due).expect("none is early"));
    }
    assert_eq!(server.stop().await.stats.completed, 1000);
    late.sort_unstable();
    let (half, p99, most) = (late[500], late[990], late[999]);
    println!("1,000 delays of 0.1 to 5 s: late {half:?} at p50, {p99:?} at p99, {most:?} at most");
    assert_hardly_late(p99, lag);
}

#[tokio::test]
async fn a_single_delay_on_an_idle_queue_is_kept() {
    let stage = Stage::new("single").await;
    let client = stage.client().await;
    let (says, mut said) = unbounded_channel();
    let handler = move |_: RawTask| {
        let _ = says.send(SystemTime::now());
        async { Ok::<_, String>(()) }
    };
    let settings = Server::builder().redis(stage.config());
    let server = stage
        .serve_with(settings, Router::new().raw("kind", handler))
        .await;
    let mut worst = Duration::ZERO;
    // The far one is heard of first: the near ones must not wait for it.
    client
        .enqueue(task("far"))
        .delay(Duration::from_secs(600))
        .await
        .unwrap();
    let lag = Lag::start();
    for delay in [1500, 700, 20, 5, 1] {
        let before = SystemTime::now();
        client.enqueue(task("near")).delay(ms(delay)).await.unwrap();
        let ran = within("it runs", Duration::from_secs(60), said.recv())
            .await
            .unwrap();
        let late = ran
            .duration_since(before + ms(delay))
            .expect("it is not early");
        worst = worst.max(late);
    }
    println!("single delays: {worst:?} late at most");
    assert_hardly_late(worst, lag);
    server.stop().await;
}
