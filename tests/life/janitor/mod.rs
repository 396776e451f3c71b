//! What the janitor removes, spares and finds.

use std::time::Duration;

use windlass::Router;

use crate::fixture::{LIMIT, Running, Stage};
use crate::support::eventually;

mod caps;
mod ending_paths;
mod hooks;
mod strays;
mod twenty_thousand;

/// A server that keeps an archive of this size and age.
async fn sweeper(stage: &Stage, tasks: usize, age: Duration, router: Router) -> Running {
    let settings = stage.server().archive_limits(tasks, age);
    stage.serve_with(settings, router).await
}

/// Waits until a counter of the queue `default` has reached `count`.
async fn wait_for_total(stage: &Stage, counter: &str, count: i64) {
    eventually(&format!("{counter} is {count}"), LIMIT, async || {
        let now = stage.total(counter).await;
        if now >= count { Ok(()) } else { Err(now) }
    })
    .await;
    assert_eq!(stage.total(counter).await, count, "{counter}");
}
