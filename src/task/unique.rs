use std::time::Duration;

use super::InvalidTask;

/// A lock that lets only one task with its key into a queue; a second one is a duplicate.
///
/// The key is the task's kind and payload unless [`key`](Self::key) gives another. Retries, delays,
/// snoozes and recoveries never conflict with the task itself. An archived or deleted task frees its
/// lock, but for one [for a time](Self::for_time).
///
/// ```
/// # use std::time::Duration;
/// use windlass::Unique;
///
/// let one_at_a_time = Unique::until_done().key("report:2026");
/// let at_most_once_a_minute = Unique::for_time(Duration::from_secs(60));
/// let after_the_last_edit = Unique::replace().max_wait(Duration::from_secs(300));
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unique {
    mode: Mode,
    key: Option<String>,
    longest: Option<Duration>,
    max_wait: Option<Duration>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mode {
    UntilDone,
    UntilStarted,
    ForTime,
    Replace,
}

impl Unique {
    /// Held until the task is done, archived or deleted.
    pub fn until_done() -> Self {
        Self::new(Mode::UntilDone)
    }

    /// Held until a server claims the task. A task that is handed back or snoozed takes it again if
    /// it is free.
    pub fn until_started() -> Self {
        Self::new(Mode::UntilStarted)
    }

    /// Held for this long after the task becomes due, whatever becomes of it: a throttle.
    pub fn for_time(time: Duration) -> Self {
        Self {
            longest: Some(time),
            ..Self::new(Mode::ForTime)
        }
    }

    /// A task that waits takes the payload and due time of the next one with its key: a debounce.
    /// While the holder runs, the next one is accepted and takes the lock over.
    pub fn replace() -> Self {
        Self::new(Mode::Replace)
    }

    /// The key, at most 256 bytes, instead of kind and payload.
    pub fn key(mut self, key: impl Into<String>) -> Self {
        self.key = Some(key.into());
        self
    }

    /// The longest time the lock is held after the task becomes due, should the task take longer.
    /// Default: no limit.
    pub fn at_most(mut self, time: Duration) -> Self {
        self.longest = Some(time);
        self
    }

    /// For [`replace`](Self::replace): the task runs at the latest this long after it was first
    /// enqueued, however often it is replaced. Default: no limit.
    pub fn max_wait(mut self, wait: Duration) -> Self {
        self.max_wait = Some(wait);
        self
    }

    fn new(mode: Mode) -> Self {
        Self {
            mode,
            key: None,
            longest: None,
            max_wait: None,
        }
    }

    pub(super) fn check(&self) -> Result<(), InvalidTask> {
        match self.longest {
            Some(time) if time < Duration::from_millis(1) => Err(InvalidTask::ZeroLock),
            _ => Ok(()),
        }
    }

    pub(super) fn longest_span(&self) -> Duration {
        self.longest
            .into_iter()
            .chain(self.max_wait)
            .max()
            .unwrap_or_default()
    }

    /// The mode's name in Redis.
    pub(crate) fn mode(&self) -> &'static str {
        match self.mode {
            Mode::UntilDone => "done",
            Mode::UntilStarted => "started",
            Mode::ForTime => "time",
            Mode::Replace => "replace",
        }
    }

    pub(crate) fn key_text(&self) -> Option<&str> {
        self.key.as_deref()
    }

    pub(crate) fn lock_time(&self) -> Option<Duration> {
        self.longest
    }

    pub(crate) fn longest_wait(&self) -> Option<Duration> {
        self.max_wait
    }
}
