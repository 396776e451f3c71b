use std::error::Error as StdError;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use crate::broker::RedisConfig;
use crate::defaults;
use crate::server::control::server::Server;
use crate::server::observe::event::Event;
use crate::server::shared::config::{Config, LostLeases, Undecodable, UnknownKind};
use crate::server::shared::failed_attempt::FailedAttempt;

impl Server {
    /// Settings for a server.
    pub fn builder() -> ServerBuilder {
        ServerBuilder::default()
    }
}

/// Settings of a [`Server`]; everything is checked in [`build`](Self::build).
#[derive(Clone)]
#[must_use = "call build()"]
pub struct ServerBuilder {
    pub(super) redis: RedisConfig,
    pub(super) queues: Vec<(String, u32)>,
    pub(super) all_queues: bool,
    pub(super) heartbeat: Option<Duration>,
    pub(super) panic_places: bool,
    pub(super) config: Config,
}

impl Default for ServerBuilder {
    fn default() -> Self {
        Self {
            redis: RedisConfig::default(),
            queues: vec![(defaults::QUEUE.to_owned(), 1)],
            all_queues: false,
            heartbeat: None,
            panic_places: true,
            config: Config::default(),
        }
    }
}

impl ServerBuilder {
    /// Where Redis is, and how to reach it: a URL, or a [`RedisConfig`]. Default: `redis://127.0.0.1/`.
    pub fn redis(mut self, redis: impl Into<RedisConfig>) -> Self {
        self.redis = redis.into();
        self
    }

    /// The queues to serve and their weights: while all have work, each gets its weight's share of
    /// the slots. Default: `default` with weight 1.
    pub fn queues(mut self, queues: impl IntoIterator<Item = (impl Into<String>, u32)>) -> Self {
        self.queues = queues
            .into_iter()
            .map(|(name, weight)| (name.into(), weight))
            .collect();
        self
    }

    /// All queues that tasks were ever enqueued to, those that are new within a heartbeat: for
    /// [`build_reaper`](Self::build_reaper) only.
    pub fn all_queues(mut self) -> Self {
        self.all_queues = true;
        self
    }

    /// Serves the queues strictly in the order given: a later one only while the earlier ones are
    /// empty. Default: by weight.
    pub fn strict_order(mut self) -> Self {
        self.config.strict = true;
        self
    }

    /// How many handlers run at the same time. Default: 32.
    pub fn concurrency(mut self, handlers: usize) -> Self {
        self.config.concurrency = handlers;
        self
    }

    /// How long a lease lasts without a heartbeat: how soon the tasks of a server that died run
    /// elsewhere. At least 1 s. Default: 30 s.
    pub fn lease(mut self, lease: Duration) -> Self {
        self.config.lease = lease;
        self
    }

    /// How often leases are extended and the server's record is written; at most a third of the
    /// lease. Default: a third of the lease.
    pub fn heartbeat(mut self, interval: Duration) -> Self {
        self.heartbeat = Some(interval);
        self
    }

    /// How long past its expiry a lease must be before its task is taken back: covers a failover to
    /// a Redis with another clock, and a late heartbeat. Default: 5 s.
    pub fn clock_skew(mut self, skew: Duration) -> Self {
        self.config.clock_skew = skew;
        self
    }

    /// How often lost leases are looked for. At most lease + clock skew − heartbeat − 2 s (or less the
    /// heartbeat once more, where that is under 2 s), because a longer silence passes for an outage of
    /// Redis. Default: 2 s.
    pub fn scan_interval(mut self, interval: Duration) -> Self {
        self.config.scan = interval;
        self
    }

    /// How many leases in a row a task may lose before it is archived. Default: 3.
    pub fn max_lost_leases(mut self, leases: u32) -> Self {
        self.config.max_lost = leases;
        self
    }

    /// What a lost lease costs its task. Default: it counts as a failed attempt.
    pub fn lost_leases(mut self, policy: LostLeases) -> Self {
        self.config.lost_leases = policy;
        self
    }

    /// How long a task waits after it has lost its lease once; after the next ones in a row it waits as
    /// after a failure. Its server and not the task is the likely cause. Default: zero, not at all.
    pub fn lost_lease_delay(mut self, delay: Duration) -> Self {
        self.config.lost_lease_delay = delay;
        self
    }

    /// How many archived tasks a queue keeps, and for how long. Default: 10,000 tasks and 90 days.
    pub fn archive_limits(mut self, tasks: usize, age: Duration) -> Self {
        self.config.archive_tasks = tasks;
        self.config.archive_age = age;
        self
    }

    /// The part of Redis' `maxmemory` that the archived and completed tasks of this server's queues may take
    /// once Redis is three quarters full: what is above goes, the oldest first, before its time. It is
    /// counted ([`Stats::shed`](crate::server::Stats::shed)) and told ([`Event::TasksShed`]). 1.0 keeps
    /// them all, and then enqueues may be refused for them. Without a `maxmemory` nothing goes. Default:
    /// 0.25.
    pub fn kept_memory(mut self, part: f64) -> Self {
        self.config.kept_memory = part;
        self
    }

    /// How long after its death a task is kept, whatever the [`archive_limits`](Self::archive_limits), while
    /// its dead-letter hook is owed and some server has that hook: longer than what the hook writes to may
    /// be away. After that it is kept, and its hook tried, as long as the archive has room for it. Default:
    /// 7 days.
    pub fn keep_for_hooks(mut self, limit: Duration) -> Self {
        self.config.keep_for_hooks = limit;
        self
    }

    /// How often completed tasks past their retention and what the archive has too much are removed.
    /// Default: 10 s.
    pub fn sweep_interval(mut self, interval: Duration) -> Self {
        self.config.sweep_interval = interval;
        self
    }

    /// How long a shutdown waits for handlers before it cancels them. Default: 20 s.
    ///
    /// After that come the [cancel grace](Self::cancel_grace), and at most 4 s in which Redis is told.
    /// So a server ends within 29 s by default, also while Redis is away, unless a handler blocks the
    /// runtime. What Redis could not be told is in the [`Report`](crate::server::Report), and runs again.
    pub fn shutdown_grace(mut self, grace: Duration) -> Self {
        self.config.shutdown_grace = grace;
        self
    }

    /// How long a cancelled handler may go on before it is given up. Default: 5 s.
    pub fn cancel_grace(mut self, grace: Duration) -> Self {
        self.config.cancel_grace = grace;
        self
    }

    /// What to do with tasks of a kind that the router lacks. Default: put them off.
    pub fn unknown_kind(mut self, policy: UnknownKind) -> Self {
        self.config.unknown_kind = policy;
        self
    }

    /// What to do with tasks whose payload cannot be decoded: see
    /// [how types of tasks change](crate::Task#changing-a-type-while-tasks-of-it-are-queued).
    /// Default: put them off, for about 10 min.
    pub fn undecodable(mut self, policy: Undecodable) -> Self {
        self.config.undecodable = policy;
        self
    }

    /// How long a failed task waits before it is tried again, unless its handler said so itself.
    /// Default: [`default_retry_delay`](crate::server::default_retry_delay).
    pub fn retry_delay(
        mut self,
        delay: impl Fn(&FailedAttempt<'_>) -> Duration + Send + Sync + 'static,
    ) -> Self {
        self.config.retry_delay = Arc::new(delay);
        self
    }

    /// Whether an error counts as a failure: one that does not is retried without spending a retry. So
    /// a task that always ends in such an error is tried again for ever, each time after its delay.
    /// Default: every error does.
    pub fn is_failure(
        mut self,
        is_failure: impl Fn(&(dyn StdError + Send + Sync + 'static)) -> bool + Send + Sync + 'static,
    ) -> Self {
        self.config.is_failure = Arc::new(is_failure);
        self
    }

    /// An observer of failures, lost leases, refused settles and connection changes. It is called on a
    /// thread of its own, for one event after the other, so it may block, and it changes nothing. At
    /// most 1,000 events wait for it; what comes on top is dropped, and counted in
    /// [`Stats::events_dropped`](crate::server::Stats::events_dropped). A server that stops tells it of what
    /// waits for at most a second.
    pub fn on_event(mut self, observer: impl Fn(&Event) + Send + Sync + 'static) -> Self {
        self.config.observer = Some(Arc::new(observer));
        self
    }

    /// Whether the error of a task that panicked says where: `panicked at src/mail.rs:17:5: …`.
    /// Default: yes.
    ///
    /// Only the process's panic hook learns the place. So the first server that is built adds to that
    /// hook, once for the process; the hook that was there before is called as before. With `false`
    /// the hook is left alone, and errors have the panic's message alone. With `RUST_BACKTRACE` set,
    /// the stack at the panic is logged, too.
    pub fn panic_places(mut self, shown: bool) -> Self {
        self.panic_places = shown;
        self
    }
}

impl fmt::Debug for ServerBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServerBuilder")
            .field("redis", &self.redis)
            .field("queues", &self.queues)
            .finish_non_exhaustive()
    }
}
