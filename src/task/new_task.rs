use std::time::{Duration, SystemTime};

use crate::task::codec::Encoded;
use crate::task::id::generate_id;
use crate::task::invalid::{InvalidTask, PayloadError};
use crate::task::name::check_kind;
use crate::task::options::{Due, TaskOptions, Timeout};
use crate::task::retry_policy::RetryPolicy;
use crate::task::unique::Unique;

/// A task with its options, ready to be enqueued.
///
/// Made from a [`Task`](super::Task) or a [`RawTask`](super::RawTask). Nothing is checked before it is
/// enqueued; what is wrong then comes back as an [`InvalidTask`] that names it.
#[derive(Debug)]
pub struct NewTask {
    pub(crate) kind: String,
    payload: Result<Encoded, PayloadError>,
    pub(crate) options: TaskOptions,
}

impl NewTask {
    pub(super) fn with_payload(kind: String, payload: Result<Encoded, PayloadError>) -> Self {
        Self {
            kind,
            payload,
            options: TaskOptions::default(),
        }
    }

    /// The queue to put it into. Default: `default`.
    ///
    /// A queue is for work that is to be served by itself, and not for each tenant or user: its name, `meta`
    /// and counters stay in Redis after its last task.
    pub fn queue(mut self, queue: impl Into<String>) -> Self {
        self.options.queue = Some(queue.into());
        self
    }

    /// An id of the caller's own, unique in its queue for as long as the task exists; a second task
    /// with it is not enqueued. Default: a generated one of 26 characters.
    pub fn id(mut self, id: impl Into<String>) -> Self {
        self.options.id = Some(id.into());
        self
    }

    /// Runs no earlier than this long after it reaches Redis, by Redis' clock. Zero means now.
    pub fn delay(mut self, delay: Duration) -> Self {
        self.options.due = if delay.is_zero() {
            Due::Now
        } else {
            Due::After(delay)
        };
        self
    }

    /// Runs no earlier than this time, to the millisecond. A time in the past means now.
    pub fn run_at(mut self, time: SystemTime) -> Self {
        self.options.due = Due::At(time);
        self
    }

    /// 0 to 9: each level counts as having waited 60 s longer, so that high ones go first and low
    /// ones still never starve. Default: 0.
    pub fn priority(mut self, priority: u8) -> Self {
        self.options.priority = priority;
        self
    }

    /// Failed attempts that are tried again before the task is archived. 0: none. Default: 25.
    pub fn max_retry(mut self, retries: u32) -> Self {
        self.options.max_retry = Some(retries);
        self
    }

    /// How long one attempt may run before it is cancelled, to the millisecond. A handler that then
    /// returns `Ok` within the server's [cancel grace](crate::server::ServerBuilder::cancel_grace) has done its
    /// work: the task is completed, and the server tells of it as
    /// [over its limit](crate::server::Event::OverLimit). In every other case the attempt has failed by the limit.
    /// Default: 30 min.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.options.timeout = Some(Timeout::After(timeout));
        self
    }

    /// Lets an attempt run for as long as its server keeps the lease.
    pub fn no_timeout(mut self) -> Self {
        self.options.timeout = Some(Timeout::Never);
        self
    }

    /// How long it waits after its failures. Default: what the server says.
    pub fn retry_policy(mut self, policy: RetryPolicy) -> Self {
        self.options.policy = Some(policy);
        self
    }

    /// The time after which it is of no use: a task that waits is archived then, a running one is
    /// cancelled as after its [timeout](Self::timeout), and one whose retry would come later is archived
    /// at once. To the millisecond. The timeout holds as well, whichever comes first.
    /// Default: none.
    pub fn deadline(mut self, time: SystemTime) -> Self {
        self.options.deadline = Some(time);
        self
    }

    /// A task that has not started by this time is archived. Default: none.
    pub fn start_before(mut self, time: SystemTime) -> Self {
        self.options.start_before = Some(time);
        self
    }

    /// How long the completed task and its result are kept. Default: zero, not at all.
    pub fn retention(mut self, retention: Duration) -> Self {
        self.options.retention = retention;
        self
    }

    /// Lets only one task with the same key into the queue. Default: none.
    pub fn unique(mut self, unique: Unique) -> Self {
        self.options.unique = Some(unique);
        self
    }

    /// A text that travels with the task, such as a trace id; one more with the same name replaces
    /// it. All names and values together have at most 16 KiB.
    pub fn header(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        let name = name.into();
        self.options.headers.retain(|(known, _)| *known != name);
        self.options.headers.push((name, value.into()));
        self
    }

    /// Its kind, and its payload if it could be encoded.
    pub(crate) fn into_payload(self) -> (String, Result<Vec<u8>, PayloadError>) {
        (self.kind, self.payload.map(|payload| payload.bytes))
    }

    /// The task, if nothing is wrong with it; else the first thing that is.
    pub(crate) fn check(self, max_payload: usize) -> Result<EnqueueItem, InvalidTask> {
        check_kind(&self.kind)?;
        self.options.check()?;
        let payload = self.payload?;
        if payload.bytes.len() > max_payload {
            let (bytes, cap) = (payload.bytes.len(), max_payload);
            return Err(PayloadError::TooLarge { bytes, cap }.into());
        }
        let (id, unique) = (&self.options.id, &self.options.unique);
        let name = |unique: &Unique| unique.lock_name(&self.kind, &payload.canonical());
        Ok(EnqueueItem {
            id: id.clone().unwrap_or_else(generate_id),
            lock: unique.as_ref().map(name),
            kind: self.kind,
            payload: payload.bytes,
            options: self.options,
        })
    }
}

/// A checked task on its way to Redis.
#[derive(Debug)]
pub(crate) struct EnqueueItem {
    pub(crate) id: String,
    pub(crate) kind: String,
    pub(crate) payload: Vec<u8>,
    pub(crate) options: TaskOptions,
    /// The name of its lock, if it has one.
    pub(crate) lock: Option<String>,
}

impl EnqueueItem {
    /// About how much it adds to a script call, in bytes. What else takes Redis' time is counted as so
    /// many of them: a task may have thousands of headers.
    pub(crate) fn size(&self) -> usize {
        const FIELD: usize = 256;
        const LOCK: usize = 2048;
        let headers = self.options.headers.iter();
        let headers = headers.map(|(name, value)| name.len() + value.len() + FIELD);
        let bytes = self.payload.len() + self.kind.len() + self.id.len() + headers.sum::<usize>();
        let lock = self.lock.as_ref().map_or(0, |name| name.len() + LOCK);
        bytes + lock + FIELD * self.options.count()
    }
}
