//! A server with many queues works as one with a single queue, and costs as little in idleness.

use std::time::{Duration, Instant};

use tokio::sync::mpsc::unbounded_channel;
use windlass::task::RawTask;
use windlass::{Router, Server};

use crate::support::{LIMIT, RedisServer, Running, Stage, eventually, task, within};

const MANY: usize = 300;

async fn serve(stage: &Stage, queues: usize, concurrency: usize, router: Router) -> Running {
    let names = (0..queues).map(|n| (format!("q{n}"), 1));
    let settings = Server::builder()
        .redis(stage.config())
        .queues(names)
        .concurrency(concurrency);
    stage.serve_with(settings, router).await
}

/// Waits until a server at rest has done nothing but wait for a while, and returns how many commands
/// Redis runs a second, those in scripts included.
async fn idle_commands(stage: &Stage) -> f64 {
    const WATCHED: Duration = Duration::from_secs(6);
    let count = async || {
        let info: redis::InfoDict = redis::cmd("INFO")
            .query_async(&mut stage.redis())
            .await
            .unwrap();
        info.get::<u64>("total_commands_processed").unwrap()
    };
    let (before, start) = (count().await, Instant::now());
    tokio::time::sleep(WATCHED).await;
    // Without those that count.
    let commands = count().await - before - 1;
    commands as f64 / start.elapsed().as_secs_f64()
}

#[tokio::test]
async fn idleness_costs_the_same_with_any_number_of_queues() {
    for queues in [1, 2, 3, MANY] {
        let redis = RedisServer::start(&[]);
        let stage = Stage::on(&redis, "many-idle").await;
        let router = Router::new().raw("kind", async |_: RawTask| Ok::<_, String>(()));
        let server = serve(&stage, queues, 32, router).await;
        stage.enqueue(task("x").queue("q0")).await;
        eventually("it is at work", LIMIT, async || {
            (server.handle.stats().completed == 1).then_some(())
        })
        .await;
        let rate = idle_commands(&stage).await;
        println!("{queues} queues: {rate:.1} commands a second");
        assert!(rate < 20.0, "{queues} queues: {rate}");
        server.stop().await;
    }
}

/// How many tasks a second a server completes of one busy queue among so many.
async fn rate_with(queues: usize) -> f64 {
    const TASKS: usize = 4_000;
    let redis = RedisServer::start(&[]);
    let stage = Stage::on(&redis, "many-busy").await;
    let busy = format!("q{}", queues / 2);
    let tasks = (0..TASKS).map(|_| task("x").queue(busy.as_str()));
    stage.enqueue_many(tasks).await;
    let start = Instant::now();
    let router = Router::new().raw("kind", async |_: RawTask| Ok::<_, String>(()));
    let server = serve(&stage, queues, 32, router).await;
    let ready = start.elapsed();
    eventually("all are done", LIMIT, async || {
        (server.handle.stats().completed == TASKS as u64).then_some(())
    })
    .await;
    let rate = TASKS as f64 / (start.elapsed() - ready).as_secs_f64();
    server.stop().await;
    rate
}

#[tokio::test]
async fn a_busy_queue_among_many_is_as_fast_as_one_alone() {
    let (alone, among) = (rate_with(1).await, rate_with(MANY).await);
    println!("{alone:.0} tasks/s alone, {among:.0} among {MANY} queues");
    assert!(among > 0.5 * alone, "{among:.0} of {alone:.0} tasks/s");
}

/// The time from enqueue to start of tasks in queues that come one after the other, in ms, sorted.
async fn pickups(stage: &Stage, queues: usize, concurrency: usize) -> Vec<f64> {
    let (says, mut said) = unbounded_channel();
    let handler = move |_: RawTask| {
        let _ = says.send(Instant::now());
        async { Ok::<_, String>(()) }
    };
    let server = serve(
        stage,
        queues,
        concurrency,
        Router::new().raw("kind", handler),
    )
    .await;
    let mut times = Vec::new();
    for n in 0..200 {
        let queue = format!("q{}", n * 7 % queues);
        let start = Instant::now();
        stage.enqueue(task("x").queue(queue)).await;
        let ran = within("the task runs", LIMIT, said.recv()).await.unwrap();
        times.push(ran.saturating_duration_since(start).as_secs_f64() * 1e3);
    }
    server.stop().await;
    times.sort_by(f64::total_cmp);
    times
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn any_of_many_queues_is_picked_up_at_once() {
    for (queues, concurrency) in [(1, 32), (MANY, 32), (MANY, 1)] {
        let redis = RedisServer::start(&[]);
        let stage = Stage::on(&redis, "many-pickup").await;
        let times = pickups(&stage, queues, concurrency).await;
        let (half, p99) = (times[100], times[197]);
        println!("{queues} queues, {concurrency} slots: p50 {half:.2} ms, p99 {p99:.2} ms");
        // Found by chance, it took a tenth of a second and more.
        assert!(
            half < 50.0,
            "{queues} queues, {concurrency} slots: {times:?}"
        );
    }
}
