use crate::defaults;

/// A failed attempt, as a retry-delay function sees it.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct FailedAttempt<'a> {
    /// The task's id.
    pub id: &'a str,
    /// Its kind.
    pub kind: &'a str,
    /// Its queue.
    pub queue: &'a str,
    /// How many attempts failed before this one: 0 at the first failure.
    pub retried: u32,
    /// How many failures it may have before it is archived.
    pub max_retry: u32,
    /// What the attempt failed with, its causes joined with `: `.
    pub error: &'a str,
}

impl<'a> FailedAttempt<'a> {
    /// A failed attempt to test a retry-delay function with, in the queue `default` and with 25
    /// retries. Set other fields on it.
    ///
    /// ```
    /// # use windlass::server::{FailedAttempt, default_retry_delay};
    /// let mut attempt = FailedAttempt::new("email:send", 3, "busy");
    /// attempt.queue = "mail";
    /// assert!(default_retry_delay(attempt.retried).as_secs() >= 3u64.pow(4) + 15);
    /// ```
    pub fn new(kind: &'a str, retried: u32, error: &'a str) -> Self {
        Self {
            id: "",
            kind,
            queue: defaults::QUEUE,
            retried,
            max_retry: defaults::MAX_RETRY,
            error,
        }
    }
}
