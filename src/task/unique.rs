use std::time::Duration;

use sha1_smol::Sha1;

use crate::task::invalid::InvalidTask;
use crate::task::name::check_lock_key;

/// A lock that lets only one task with its key into a queue; a second one is a duplicate.
///
/// A key belongs to its kind. It is made of the payload unless [`key`](Self::key) gives another:
/// equal payloads have equal keys, also where they have a `HashMap`, but not where they have a
/// `HashSet`, whose order is another one each time. Retries, delays, snoozes and recoveries never
/// conflict with the task itself. An archived or deleted task frees its lock, unless it is
/// [for a time](Self::for_time).
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
    across_kinds: bool,
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

    /// Held until a server claims the task. A task that waits once more, because it failed, was snoozed,
    /// handed back or lost its server, takes it again if it is free.
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

    /// A task that waits becomes the next one with its key: a debounce. It takes over all of it, with
    /// all its retries, but keeps its own id and its own [longest wait](Self::max_wait).
    ///
    /// While the holder runs, the next one is accepted and takes the lock over. The holder's attempt is
    /// then its last: unless it succeeds, the task is dropped, however the attempt ends, so that an
    /// older task never runs after a newer one.
    ///
    /// Only tasks of one kind replace each other: with [`across_kinds`](Self::across_kinds) one of
    /// another kind is a duplicate.
    pub fn replace() -> Self {
        Self::new(Mode::Replace)
    }

    /// The key, at most 256 bytes, instead of one that is made of the payload.
    pub fn key(mut self, key: impl Into<String>) -> Self {
        self.key = Some(key.into());
        self
    }

    /// Shares the given [`key`](Self::key) with all tasks of the queue that share it, whatever their
    /// kind. Default: only tasks of the same kind have the same lock.
    pub fn across_kinds(mut self) -> Self {
        self.across_kinds = true;
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
            across_kinds: false,
            longest: None,
            max_wait: None,
        }
    }

    pub(super) fn check(&self) -> Result<(), InvalidTask> {
        if let Some(key) = &self.key {
            check_lock_key(key)?;
        } else if self.across_kinds {
            return Err(InvalidTask::SharedLock);
        }
        match self.longest {
            Some(time) if time < Duration::from_millis(1) => Err(InvalidTask::ZeroLock),
            _ => Ok(()),
        }
    }

    /// The lock's name in its queue. Names of the three sorts cannot be equal: neither a kind nor a
    /// given key has braces, and a digest is 40 digits.
    ///
    /// `payload` must be the same for equal payloads.
    pub(crate) fn lock_name(&self, kind: &str, payload: &[u8]) -> String {
        match &self.key {
            Some(key) if self.across_kinds => format!("{{{key}}}"),
            Some(key) => format!("{kind}{{{key}}}"),
            None => Sha1::from([kind.as_bytes(), b"\0", payload].concat())
                .digest()
                .to_string(),
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

    pub(crate) fn lock_time(&self) -> Option<Duration> {
        self.longest
    }

    pub(crate) fn longest_wait(&self) -> Option<Duration> {
        self.max_wait
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_computed_name_is_the_one_that_0_1_makes() {
        // `printf 'kind\0payload' | sha1sum`
        let name = Unique::until_done().lock_name("kind", b"payload");
        assert_eq!(name, "0ffb7ed742e2e59c4f8e77ad267674a4d412049f");
    }

    #[test]
    fn no_key_can_be_given_that_takes_the_lock_of_another_sort_or_kind() {
        let given = |kind, key: &str| Unique::until_done().key(key).lock_name(kind, b"");
        let shared = |key: &str| {
            Unique::until_done()
                .key(key)
                .across_kinds()
                .lock_name("k", b"")
        };
        let computed = Unique::until_done().lock_name("k", b"");
        let names = [
            given("k", &computed),
            given("a", "b"),
            given("b", "b"),
            given("a:b", "c"),
            given("a", "b:c"),
            shared(&computed),
            shared("b"),
            computed,
        ];
        let different: std::collections::BTreeSet<_> = names.iter().collect();
        assert_eq!(different.len(), names.len(), "{names:?}");
        assert_eq!(
            shared("b"),
            Unique::replace()
                .key("b")
                .across_kinds()
                .lock_name("other", b"x")
        );
    }
}
