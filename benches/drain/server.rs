use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use tokio::sync::Notify;
use windlass::task::RawTask;
use windlass::{Router, Server, State};

use crate::KIND;
use crate::common::Failure;

/// Counts handlers down, to know when the last one ran.
struct Left {
    tasks: AtomicUsize,
    none: Notify,
}

async fn nothing(_: RawTask, State(left): State<Arc<Left>>) -> Result<(), Failure> {
    if left.tasks.fetch_sub(1, Relaxed) == 1 {
        left.none.notify_one();
    }
    Ok(())
}

/// Runs a server from its start until it has stopped, which settles everything that it ran.
pub async fn drain(url: &str, tasks: usize, concurrency: usize) -> Result<(), Failure> {
    let left = Arc::new(Left {
        tasks: AtomicUsize::new(tasks),
        none: Notify::new(),
    });
    let router = Router::new().raw(KIND, nothing).state(left.clone());
    let server = Server::builder()
        .redis(url)
        .concurrency(concurrency)
        .build(router)
        .await?;
    server.run_until(left.none.notified()).await?;
    Ok(())
}
