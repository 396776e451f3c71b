//! A system that is out of threads, or of memory for their stacks.

use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use windlass::task::RawTask;
use windlass::{NewTask, Router};

use crate::support::{LIMIT, Stage, child, eventually};

const TASKS: u64 = 100;

/// Limits the memory of this process to this many bytes: none can be given to a new thread.
fn limit_memory(bytes: &str) {
    let pid = std::process::id().to_string();
    let limit = format!("--as={bytes}:unlimited");
    let status = Command::new("prlimit")
        .args(["--pid", &pid, &limit])
        .status();
    assert!(status.unwrap().success());
}

fn memory() -> u64 {
    let pages = std::fs::read_to_string("/proc/self/statm").unwrap();
    let pages: u64 = pages.split(' ').next().unwrap().parse().unwrap();
    pages * 4096
}

#[tokio::test]
#[ignore = "runs in a child process of other tests"]
async fn out_of_threads() {
    if !child::end_with_parent() {
        return;
    }
    let stage = Stage::new("threads").await;
    let go_on = Arc::new(AtomicBool::new(false));
    let may_go_on = go_on.clone();
    let handler = move |_: RawTask| {
        while !may_go_on.load(Ordering::Relaxed) {
            std::thread::sleep(Duration::from_millis(5));
        }
        Ok::<_, String>(())
    };
    let router = Router::new()
        .blocking_raw("blocks", handler)
        .raw("first", |_: RawTask| async { Ok::<_, String>(()) });
    let settings = stage.server().concurrency(TASKS as usize);
    let server = stage.serve_with(settings, router).await;
    // Then the server has all threads and connections of its own.
    stage.enqueue(RawTask::new("first", "x")).await;
    stage.wait_until_done(1).await;
    let tasks = (0..TASKS).map(|_| NewTask::from(RawTask::new("blocks", "x")).max_retry(0));
    limit_memory(&(memory() + (3 << 19)).to_string());
    let started = Instant::now();
    stage.enqueue_many(tasks).await;
    eventually("some are handed back, again", LIMIT, async || {
        let released = server.handle.stats().released;
        if released > TASKS {
            Ok(())
        } else {
            Err(released)
        }
    })
    .await;
    let released = server.handle.stats().released;
    let rests = started.elapsed().as_secs() + 1;
    assert!(released <= TASKS * rests, "{released} in {rests} s");
    limit_memory("unlimited");
    go_on.store(true, Ordering::Relaxed);
    stage.wait_until_done(TASKS + 1).await;
    let stats = server.stop().await.stats;
    assert_eq!((stats.archived, stats.retried), (0, 0));
}

#[tokio::test]
async fn a_blocking_handler_without_a_thread_spends_no_retry_and_its_slot_rests() {
    let mut child = child::spawn("run::threads::out_of_threads", &[]);
    let status = child.wait_exit(LIMIT * 2).await;
    assert!(status.success(), "{status}");
}
