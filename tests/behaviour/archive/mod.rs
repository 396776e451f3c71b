//! What the janitor removes, spares and finds.

use std::time::Duration;

use windlass::Router;

use crate::support::{Running, Stage};

mod caps;
mod ending_paths;
mod owed_hooks;
mod strays;

/// A server that keeps an archive of this size and age.
async fn sweeper(stage: &Stage, tasks: usize, age: Duration, router: Router) -> Running {
    let settings = stage.server().archive_limits(tasks, age);
    stage.serve_with(settings, router).await
}
