//! Redis is away for a while: what a server does meanwhile, and after.
//!
//! Each test has a process of its own, because it counts what the whole process uses and logs.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Instant, sleep};
use windlass::Router;
use windlass::task::RawTask;

use crate::fixture::{LIMIT, Stage};
use crate::seen::seen;
use crate::support::Log;
use crate::support::{RedisServer, child, eventually};

const AWAY: Duration = Duration::from_secs(6);
const RESUMES: Duration = Duration::from_secs(5);
const RUNNING: usize = 8;

/// User and system time of this process.
fn cpu() -> Duration {
    let stat = std::fs::read_to_string("/proc/self/stat").expect("this system has /proc");
    // Fields 14 and 15, in ticks of 10 ms; the name before them may hold spaces.
    let after_name = stat.rsplit(')').next().unwrap();
    let ticks = after_name.split_whitespace().skip(11).take(2);
    let ticks: u64 = ticks.map(|ticks| ticks.parse::<u64>().unwrap()).sum();
    Duration::from_millis(10 * ticks)
}

/// Runs a server through an outage, in which its handlers end.
async fn outlive(stop: impl AsyncFnOnce(&RedisServer), start: fn(&RedisServer)) {
    let redis = Arc::new(RedisServer::start(&[
        ("appendonly", "yes"),
        ("appendfsync", "always"),
    ]));
    let mut stage = Stage::on(&redis, "outage").await;
    let log = Log::default();
    tracing::subscriber::set_global_default(log.subscriber()).unwrap();
    let (says, mut starts) = seen();
    let (go_on, wait) = tokio::sync::watch::channel(false);
    let router = Router::new().raw("kind", move |task: RawTask| {
        let (says, mut wait) = (says.clone(), wait.clone());
        async move {
            says.send(())?;
            wait.wait_for(|go| *go).await?;
            anyhow::ensure!(task.payload != b"fails", "it fails");
            Ok(())
        }
    });
    let settings = stage.server().queues([("default", 1), ("other", 1)]);
    let server = stage.serve_with(settings, router).await;
    let client = stage.client().await;
    for i in 0..RUNNING {
        let payload = if i % 2 == 0 { "works" } else { "fails" };
        client
            .enqueue(RawTask::new("kind", payload))
            .max_retry(0)
            .await
            .unwrap();
    }
    starts.take(RUNNING).await;

    stop(&redis).await;
    eventually("the server has noticed", LIMIT, async || {
        let noticed = |line: &String| line.contains("Redis fails");
        log.lines().iter().any(noticed).then_some(())
    })
    .await;
    let (lines, used) = (log.lines().len(), cpu());
    go_on.send(true).unwrap();
    // What it does meanwhile: nothing can be waited for.
    sleep(AWAY).await;
    let (lines, used) = (log.lines().len() - lines, cpu() - used);
    eprintln!("while Redis was away for {AWAY:?}: {used:?} of CPU, {lines} lines logged");
    assert!(used < AWAY / 20, "{used:?}: {:#?}", log.lines());
    let limit = AWAY.as_secs() as usize + 1;
    assert!((1..=limit).contains(&lines), "{lines}: {:#?}", log.lines());

    let before = log.lines().len();
    let (resumes, restarted) = (Instant::now(), redis.clone());
    tokio::task::spawn_blocking(move || start(&restarted))
        .await
        .unwrap();
    stage.reconnect(&redis).await;
    stage
        .client()
        .await
        .enqueue(RawTask::new("kind", "works"))
        .await
        .unwrap();
    starts.next().await;
    let resumed = resumes.elapsed();
    stage.wait_until_drained("default", RESUMES).await;
    let settled = resumes.elapsed();
    eprintln!("work went on after {resumed:?}, all was settled after {settled:?}");
    assert!(
        resumed < RESUMES && settled < RESUMES,
        "{resumed:?} {settled:?}"
    );
    let lines = log.lines().len() - before;
    eprintln!("{lines} lines logged as it came back");
    assert!(lines <= RESUMES.as_secs() as usize, "{:#?}", log.lines());

    let stats = server.stop().await.stats;
    let (works, fails) = (RUNNING as u64 / 2 + 1, RUNNING as u64 / 2);
    assert_eq!((stats.completed, stats.archived), (works, fails));
    assert_eq!((stats.settles_refused, stats.leases_lost), (0, 0));
    assert_eq!(stage.count("archived").await as u64, fails);
    assert_eq!(stage.total("processed").await, works + fails);
}

#[tokio::test]
#[ignore = "runs in a child process of other tests"]
async fn killed() {
    if child::end_with_parent() {
        outlive(async |redis| redis.kill(), RedisServer::restart).await;
    }
}

#[tokio::test]
#[ignore = "runs in a child process of other tests"]
async fn frozen() {
    if child::end_with_parent() {
        outlive(async |redis| redis.pause(), RedisServer::resume).await;
    }
}

async fn passes(entry: &str) {
    let mut child = child::spawn(entry, &[]);
    let status = child.wait_exit(Duration::from_secs(60)).await;
    assert!(status.success(), "{status}");
}

#[tokio::test]
async fn a_server_is_quiet_while_redis_is_down_and_works_again_at_once() {
    passes("outage::killed").await;
}

#[tokio::test]
async fn a_server_is_quiet_while_redis_is_frozen_and_works_again_at_once() {
    passes("outage::frozen").await;
}
