/// A failed try, as a retry-delay function sees it.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct FailedAttempt<'a> {
    /// The task's id.
    pub id: &'a str,
    /// Its kind.
    pub kind: &'a str,
    /// Its queue.
    pub queue: &'a str,
    /// How many tries failed before this one: 0 at the first failure.
    pub retried: u32,
    /// How many failures it may have before it is archived.
    pub max_retry: u32,
    /// What the try failed with, its causes joined with `: `.
    pub error: &'a str,
}
