//! A worker process: one server.

use std::io::{BufRead, stdin};
use std::path::Path;
use std::process::exit;
use std::thread;
use std::time::Duration;

use windlass::{Router, Server};

use crate::journal::Journal;
use crate::settings::{CLOCK_SKEW, LEASE, QUEUE, RETRY_DELAY, SCAN, concurrency};
use crate::work::pack;

pub async fn run(url: &str, journal: &Path) -> anyhow::Result<()> {
    // The parent has redirected stderr into a file.
    tracing_subscriber::fmt()
        .with_writer(std::io::stderr)
        .with_ansi(false)
        .init();
    let journal = Journal::create(journal)?;
    let server = Server::builder()
        .redis(url)
        .queues([(QUEUE, 1)])
        .concurrency(concurrency())
        .lease(LEASE)
        .clock_skew(CLOCK_SKEW)
        .scan_interval(SCAN)
        .retry_delay(|_| RETRY_DELAY)
        .shutdown_grace(Duration::from_secs(2))
        .build(Router::new().blocking_task(pack).state(journal.clone()))
        .await?;
    let handle = server.handle();
    journal.opened(handle.id())?;
    // A line means: stop. The pipe's end without one means that the parent has died.
    thread::spawn(move || match stdin().lock().lines().next() {
        Some(Ok(_)) => handle.stop(),
        _ => exit(1),
    });
    server.run_until(std::future::pending()).await?;
    Ok(())
}
