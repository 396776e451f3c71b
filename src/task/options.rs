use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::defaults::{self, FAR};
use crate::task::invalid::InvalidTask;
use crate::task::retry_policy::RetryPolicy;
use crate::task::unique::Unique;

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
    pub policy: Option<RetryPolicy>,
    pub deadline: Option<SystemTime>,
    pub start_before: Option<SystemTime>,
    pub retention: Duration,
    pub unique: Option<Unique>,
    pub headers: Vec<(String, String)>,
}

impl TaskOptions {
    pub(crate) fn queue(&self) -> &str {
        self.queue.as_deref().unwrap_or(defaults::QUEUE)
    }

    /// How many are set, headers aside.
    pub(crate) fn count(&self) -> usize {
        let set = [
            self.id.is_some(),
            !matches!(self.due, Due::Now),
            self.priority != 0,
            self.max_retry.is_some(),
            self.timeout.is_some(),
            self.policy.is_some(),
            self.deadline.is_some(),
            self.start_before.is_some(),
            !self.retention.is_zero(),
            self.unique.is_some(),
        ];
        set.into_iter().filter(|is_set| *is_set).count()
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
        let times = [self.deadline, self.start_before];
        let spans = [
            self.retention,
            self.unique
                .as_ref()
                .map_or(Duration::ZERO, Unique::longest_span),
        ];
        let due_fits = match self.due {
            Due::Now => true,
            Due::After(delay) => delay <= FAR,
            Due::At(time) => fits(time),
        };
        if !due_fits {
            return Err(InvalidTask::Time("due time"));
        }
        if !times.into_iter().flatten().all(fits) {
            return Err(InvalidTask::Time("deadline"));
        }
        if spans.into_iter().any(|span| span > FAR) {
            return Err(InvalidTask::Time("retention or lock time"));
        }
        if let Some(policy) = &self.policy {
            policy.check()?;
        }
        if let Some(unique) = &self.unique {
            unique.check()?;
        }
        self.check_headers()
    }

    fn check_headers(&self) -> Result<(), InvalidTask> {
        for (name, _) in &self.headers {
            super::check_header(name)?;
        }
        let bytes = self
            .headers
            .iter()
            .map(|(name, value)| name.len() + value.len())
            .sum();
        if bytes > defaults::MAX_HEADERS {
            return Err(InvalidTask::Headers(bytes));
        }
        Ok(())
    }
}

fn fits(time: SystemTime) -> bool {
    time >= UNIX_EPOCH && time <= SystemTime::now() + FAR
}
