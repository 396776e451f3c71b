use std::time::{Duration, SystemTime, UNIX_EPOCH};

use super::InvalidTask;
use crate::defaults;

/// Longer spans are surely a mistake, and would lose precision as a sorted set's score.
const FAR: Duration = Duration::from_secs(100 * 366 * 24 * 3600);

/// When a task may run first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Due {
    #[default]
    Now,
    /// A span, which Redis adds to its own clock.
    After(Duration),
    /// A time by the user's clock, taken as given.
    At(SystemTime),
}

/// How long one attempt may run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Timeout {
    After(Duration),
    Never,
}

/// The options of a task, each `None` until set.
#[derive(Debug, Clone, Default)]
pub(crate) struct TaskOptions {
    pub queue: Option<String>,
    pub id: Option<String>,
    pub due: Due,
    pub priority: u8,
    pub max_retry: Option<u32>,
    pub timeout: Option<Timeout>,
}

impl TaskOptions {
    pub(crate) fn queue(&self) -> &str {
        self.queue.as_deref().unwrap_or(defaults::QUEUE)
    }

    pub(crate) fn check(&self) -> Result<(), InvalidTask> {
        super::check_queue(self.queue())?;
        if let Some(id) = &self.id {
            super::check_id(id)?;
        }
        if self.priority > defaults::MAX_PRIORITY {
            return Err(InvalidTask::Priority(self.priority));
        }
        if let Some(Timeout::After(timeout)) = self.timeout
            && !(Duration::from_millis(1)..=FAR).contains(&timeout)
        {
            return Err(InvalidTask::Timeout(timeout));
        }
        match self.due {
            Due::After(delay) if delay > FAR => Err(InvalidTask::Due),
            Due::At(time) if time > SystemTime::now() + FAR || time < UNIX_EPOCH => {
                Err(InvalidTask::Due)
            }
            _ => Ok(()),
        }
    }
}
