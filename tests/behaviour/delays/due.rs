//! Tasks that wait for a time: never early, and hardly late.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use windlass::task::RawTask;
use windlass::{NewTask, Router};

use crate::support::{Running, Seen, Stage, seen};

fn micros(time: SystemTime) -> i64 {
    time.duration_since(UNIX_EPOCH).unwrap().as_micros() as i64
}

/// A task that carries the earliest time, in µs, at which it may run.
fn not_before(time: SystemTime) -> NewTask {
    NewTask::from(RawTask::new("due", micros(time).to_string()))
}

/// A server whose handler says by how many µs its task is late.
async fn serve(stage: &Stage) -> (Running, Seen<i64>) {
    let (says, lateness) = seen();
    let router = Router::new().raw("due", move |task: RawTask| {
        let now = micros(SystemTime::now());
        let says = says.clone();
        async move {
            let due: i64 = String::from_utf8(task.payload)?.parse()?;
            says.send(now - due)?;
            Ok::<_, anyhow::Error>(())
        }
    });
    let settings = stage.server().concurrency(64);
    (stage.serve_with(settings, router).await, lateness)
}

/// None may be early; 99 in 100 may be late by at most `limit`.
fn check(what: &str, mut lateness: Vec<i64>, limit: Duration) {
    lateness.sort_unstable();
    let at = |share: usize| lateness[(lateness.len() - 1) * share / 100];
    println!(
        "{what}: earliest {} µs, median {} µs, p99 {} µs, latest {} µs",
        at(0),
        at(50),
        at(99),
        at(100)
    );
    assert!(at(0) >= 0, "{what}: early by {} µs", -at(0));
    assert!(
        at(99) < limit.as_micros() as i64,
        "{what}: late by {} µs",
        at(99)
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn delayed_tasks_are_never_early_and_hardly_late() {
    let stage = Stage::new("spread").await;
    let client = stage.client().await;
    let (server, mut lateness) = serve(&stage).await;
    for i in 0..300 {
        let delay = Duration::from_micros(1_500_000 - i * 4_567);
        let now = SystemTime::now();
        client
            .enqueue(not_before(now + delay))
            .delay(delay)
            .await
            .unwrap();
        let time = now + delay + Duration::from_micros(i * 3);
        client.enqueue(not_before(time)).run_at(time).await.unwrap();
    }
    let lateness = lateness.take(600).await;
    check("spread", lateness, Duration::from_millis(250));
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_tasks_can_be_due_at_once() {
    let stage = Stage::new("at-once").await;
    let client = stage.client().await;
    let (server, mut lateness) = serve(&stage).await;
    let time = SystemTime::now() + Duration::from_secs(1);
    let tasks = (0..500).map(|_| not_before(time).run_at(time));
    assert!(client.enqueue_many(tasks).await.iter().all(Result::is_ok));
    let lateness = lateness.take(500).await;
    check("500 at once", lateness, Duration::from_millis(500));
    server.stop().await;
}

#[tokio::test]
async fn an_idle_server_hears_of_an_earlier_time() {
    let stage = Stage::new("earlier").await;
    let client = stage.client().await;
    let (server, mut lateness) = serve(&stage).await;
    let mut all = Vec::new();
    for (seconds, ms) in [(600, 0), (0, 1_700), (0, 300)] {
        let delay = Duration::from_secs(seconds) + Duration::from_millis(ms);
        let task = not_before(SystemTime::now() + delay);
        client.enqueue(task).delay(delay).await.unwrap();
    }
    all.extend(lateness.take(2).await);
    check("an idle queue", all, Duration::from_millis(250));
    assert_eq!(stage.count("scheduled").await, 1);
    server.stop().await;
}

#[tokio::test]
async fn a_retry_is_never_early() {
    let stage = Stage::new("retries").await;
    let client = stage.client().await;
    let (says, mut spans) = seen();
    let router = Router::new().raw("due", move |_: RawTask, context: windlass::TaskContext| {
        let said = says.send((context.id().to_owned(), SystemTime::now()));
        async move {
            said?;
            anyhow::ensure!(context.attempt() > 1, "once more");
            Ok(())
        }
    });
    let delay = Duration::from_millis(30);
    let settings = stage.server().retry_delay(move |_| delay);
    let server = stage.serve_with(settings, router).await;
    for _ in 0..50 {
        let id = client.enqueue(RawTask::new("due", "x")).await.unwrap().id;
        let [(first_id, first), (second_id, second)] = spans.take(2).await.try_into().unwrap();
        assert_eq!((&first_id, &second_id), (&id, &id));
        let waited = second.duration_since(first).unwrap();
        assert!(waited >= delay, "{waited:?}");
    }
    server.stop().await;
}
