use std::time::Duration;

use crate::server::observe::stats::Stats;
use crate::server::shared::attempt::Attempt;

/// What a server leaves when it has stopped.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct Report {
    /// What it did.
    pub stats: Stats,
    /// Handlers that did not end in time. Their leases run out, and then their tasks run elsewhere;
    /// those of handlers that had been given up before, at their timeout, have moved on already.
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

impl StillRunning {
    pub(crate) fn new(attempt: &Attempt) -> Self {
        Self {
            id: attempt.leased.id.to_string(),
            kind: attempt.record.kind.clone(),
            queue: attempt.queue.name.to_string(),
            running_for: attempt.started.elapsed(),
        }
    }
}
