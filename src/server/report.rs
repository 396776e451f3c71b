use std::time::Duration;

use super::Stats;

/// What a server leaves when it has stopped.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct Report {
    /// What it did.
    pub stats: Stats,
    /// Handlers that did not end in time. Their leases run out, and then their tasks run elsewhere.
    pub still_running: Vec<StillRunning>,
    /// Runs that ended, but of which Redis could not be told in time. Their tasks run again.
    pub unsettled: usize,
}

/// A handler that did not end in time.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct StillRunning {
    /// The task's id.
    pub id: String,
    /// Its kind.
    pub kind: String,
    /// Its queue.
    pub queue: String,
    /// How long it has run.
    pub running_for: Duration,
}
