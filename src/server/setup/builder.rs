use std::error::Error as StdError;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures::stream::{self, StreamExt, TryStreamExt};
use thiserror::Error;
use tokio::sync::{Semaphore, mpsc};

use crate::broker::{
    BrokerError, Queue, RedisConfig, RedisConfigError, SetupProblem, check_redis, list_of_queues,
    register_hooks,
};
use crate::defaults::{self, FAR};
use crate::router::{Router, RouterError, Routes};
use crate::server::control::signals::Signals;
use crate::server::each_queue::QUEUES_AT_ONCE;
use crate::server::queues::{Queues, ServedQueue};
use crate::server::setup::config::{Config, LostLeases, Role, Undecodable, UnknownKind};
use crate::server::setup::connections::Connections;
use crate::server::shared::Shared;
use crate::server::upkeep::witness::Witness;
use crate::server::{Event, FailedAttempt, Server, default_retry_delay};
use crate::task::{NameError, check_queue, generate_id};
use crate::user_code::install_panic_hook;

/// Why a server was not built. Each says what is wrong and what to do.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum BuildError {
    /// The router is incomplete.
    #[error(transparent)]
    Router(#[from] RouterError),
    /// The [`RedisConfig`] cannot be used.
    #[error(transparent)]
    Config(#[from] RedisConfigError),
    /// A queue's name cannot be used.
    #[error(transparent)]
    Name(#[from] NameError),
    /// There is nothing to serve.
    #[error("the server has no queue: name at least one with queues()")]
    NoQueue,
    /// A worker cannot serve whatever queues there are.
    #[error("all_queues() is for build_reaper(): name the queues of a worker with queues()")]
    AllQueues,
    /// A queue is named twice.
    #[error("queue {0:?} is named twice: name it once, with one weight")]
    QueueTwice(String),
    /// A weight of zero would starve a queue.
    #[error("queue {0:?} has weight 0: give at least 1")]
    ZeroWeight(String),
    /// No handler could run.
    #[error("concurrency is 0: give at least 1")]
    ZeroConcurrency,
    /// More handlers than can be counted.
    #[error("concurrency {0} is too high: give at most {max}", max = Semaphore::MAX_PERMITS)]
    Concurrency(usize),
    /// Leases would end before they could be extended.
    #[error("a lease of {0:?} is too short: give at least 1 s")]
    ShortLease(Duration),
    /// One missed heartbeat would lose leases.
    #[error(
        "a heartbeat of {heartbeat:?} is too slow for a lease of {lease:?}: give at most a third of it"
    )]
    #[non_exhaustive]
    SlowHeartbeat {
        /// The heartbeat given.
        heartbeat: Duration,
        /// The lease given.
        lease: Duration,
    },
    /// Every pause between two looks would pass for an outage.
    #[error(
        "a scan_interval of {scan:?} is too long for leases of {lease:?}: give at most {most:?}, or longer leases"
    )]
    #[non_exhaustive]
    SlowScan {
        /// The scan interval given.
        scan: Duration,
        /// The lease given.
        lease: Duration,
        /// The longest scan interval for this lease, clock skew and heartbeat.
        most: Duration,
    },
    /// It is no part of a whole.
    #[error("a kept_memory of {0} is no part of Redis' memory: give 0.0 to 1.0")]
    KeptMemory(f64),
    /// A time that no clock can hold.
    #[error("{0} is longer than 100 years: give less")]
    LongDuration(&'static str),
    /// A time of zero would never let anything happen.
    #[error("{0} is zero: give at least 1 ms")]
    ZeroDuration(&'static str),
    /// Redis cannot be reached, or refuses.
    #[error(transparent)]
    Broker(#[from] BrokerError),
    /// The signal handlers could not be installed.
    #[error("the signal handlers could not be installed")]
    Signals(#[source] std::io::Error),
    /// Redis can be reached, but must not be used as it is.
    #[error(transparent)]
    Redis(SetupProblem),
}

/// Settings of a [`Server`]; everything is checked in [`build`](Self::build).
#[derive(Clone)]
#[must_use = "call build()"]
pub struct ServerBuilder {
    redis: RedisConfig,
    queues: Vec<(String, u32)>,
    all_queues: bool,
    heartbeat: Option<Duration>,
    panic_places: bool,
    config: Config,
}

impl Default for ServerBuilder {
    fn default() -> Self {
        Self {
            redis: RedisConfig::default(),
            queues: vec![(defaults::QUEUE.to_owned(), 1)],
            all_queues: false,
            heartbeat: None,
            panic_places: true,
            config: Config {
                role: Role::Worker,
                strict: false,
                concurrency: defaults::CONCURRENCY,
                lease: defaults::LEASE,
                heartbeat: defaults::HEARTBEAT,
                clock_skew: defaults::CLOCK_SKEW,
                scan: defaults::SCAN,
                shutdown_grace: defaults::SHUTDOWN_GRACE,
                cancel_grace: defaults::CANCEL_GRACE,
                max_lost: defaults::MAX_LOST,
                lost_leases: LostLeases::default(),
                lost_lease_delay: Duration::ZERO,
                unknown_kind: UnknownKind::default(),
                undecodable: Undecodable::default(),
                archive_tasks: defaults::ARCHIVE_TASKS,
                archive_age: defaults::ARCHIVE_AGE,
                kept_memory: defaults::KEPT_MEMORY,
                keep_for_hooks: defaults::KEEP_FOR_HOOKS,
                sweep_interval: defaults::SWEEP,
                retry_delay: Arc::new(|attempt| default_retry_delay(attempt.retried)),
                is_failure: Arc::new(|_| true),
                observer: None,
            },
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
    /// Default: [`default_retry_delay`].
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

    /// Checks everything, connects, and looks at Redis: its version, its eviction policy, whether it
    /// keeps data on disk, whether the queues' keys are windlass', and whether its user may use their
    /// channels.
    ///
    /// # Errors
    /// Whatever is wrong, by name. What is only dangerous is logged as a warning.
    pub async fn build(self, router: Router) -> Result<Server, BuildError> {
        let routes = router.build()?;
        if self.all_queues {
            return Err(BuildError::AllQueues);
        }
        self.build_with(routes).await
    }

    /// Builds a reaper: a server that claims and runs no tasks, and only looks after its queues, as each
    /// server does beside its tasks. It takes back the tasks of workers that died, makes tasks pending when
    /// they are due, archives those whose deadline has passed, keeps the archive's limits, and runs the
    /// router's dead-letter hooks. The router has nothing but these.
    ///
    /// It is for a process that has no handlers, such as a web server that is to hear of each task that
    /// died, also while no worker runs. Weights mean nothing to it. Its
    /// [`health`](crate::server::ServerHandle::health) names queues that have tasks and that no worker
    /// serves. Give it the same settings as workers: leases, [`is_failure`](Self::is_failure),
    /// [`retry_delay`](Self::retry_delay) and the archive's limits.
    ///
    /// ```no_run
    /// use windlass::handler::DeadLetter;
    /// use windlass::{Router, Server};
    ///
    /// async fn tell(letter: DeadLetter) -> Result<(), std::io::Error> {
    ///     eprintln!("{} {} was given up: {}", letter.kind, letter.id, letter.reason);
    ///     Ok(())
    /// }
    ///
    /// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
    /// let hooks = Router::new().on_dead_letter("email:send", tell);
    /// let reaper = Server::builder().all_queues().build_reaper(hooks).await?;
    /// tokio::spawn(reaper.run_until(std::future::pending()));
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// As [`build`](Self::build); and a router with handlers.
    pub async fn build_reaper(mut self, router: Router) -> Result<Server, BuildError> {
        let routes = router.build_without_handlers()?;
        self.config.role = Role::Reaper {
            of_all_queues: self.all_queues,
        };
        self.build_with(routes).await
    }

    async fn build_with(mut self, routes: Routes) -> Result<Server, BuildError> {
        self.check()?;
        let (endpoint, keys) = self.redis.open()?;
        let connections = Connections::new(endpoint, self.config.lease);
        connections.claim.reach().await?;
        let signals = Signals::listen_early().map_err(BuildError::Signals)?;
        let served: Vec<_> = if self.all_queues {
            let queues = list_of_queues(&connections.claim, &keys).await?;
            queues.into_iter().map(ServedQueue::unweighted).collect()
        } else {
            let queues = self.queues.iter();
            let served = queues.map(|(name, weight)| ServedQueue {
                queue: keys.queue(name),
                weight: *weight,
            });
            served.collect()
        };
        let queues: Vec<Queue> = served.iter().map(|served| served.queue.clone()).collect();
        let redis = check_redis(&connections.claim, &keys, &queues).await?;
        for finding in redis.findings {
            if finding.refuses() {
                return Err(BuildError::Redis(finding));
            }
            tracing::warn!("{finding}");
        }
        if routes.hooked_kinds().len() > 0 {
            let (link, lasts) = (&connections.claim, self.config.hooks_last());
            let register = |queue| register_hooks(link, queue, lasts, routes.hooked_kinds());
            let calls: Vec<_> = queues.iter().map(register).collect();
            let calls = stream::iter(calls).buffer_unordered(QUEUES_AT_ONCE);
            calls.try_collect::<()>().await?;
        }
        if self.panic_places {
            install_panic_hook();
        }
        if cfg!(panic = "abort") {
            tracing::warn!(
                "compiled with panic = \"abort\": a panic in one handler ends this process and all its \
                 tasks, and then other servers that take them up; use panic = \"unwind\""
            );
        }
        let witness = Witness::new(self.config.harmless_outage());
        let slots = Arc::new(Semaphore::new(self.config.concurrency));
        let (sender, events) = mpsc::channel(defaults::EVENTS);
        Ok(Server {
            events,
            signals,
            redis_version: redis.version,
            shared: Arc::new(Shared {
                id: generate_id().into(),
                started: Instant::now(),
                config: self.config,
                routes,
                keys,
                queues: Queues::new(served),
                phases: Default::default(),
                slots,
                running: Default::default(),
                due: Default::default(),
                leaks: Default::default(),
                hooks_owed: Default::default(),
                counters: Default::default(),
                events: sender,
                vitals: Default::default(),
                witness,
                log_limit: Default::default(),
            }),
            connections: Arc::new(connections),
        })
    }

    fn check(&mut self) -> Result<(), BuildError> {
        if self.queues.is_empty() && !self.all_queues {
            return Err(BuildError::NoQueue);
        }
        for (place, (name, weight)) in self.queues.iter().enumerate() {
            check_queue(name)?;
            if *weight == 0 {
                return Err(BuildError::ZeroWeight(name.clone()));
            }
            if self.queues[..place]
                .iter()
                .any(|(earlier, _)| earlier == name)
            {
                return Err(BuildError::QueueTwice(name.clone()));
            }
        }
        let config = &mut self.config;
        match config.concurrency {
            0 => return Err(BuildError::ZeroConcurrency),
            n if n > Semaphore::MAX_PERMITS => return Err(BuildError::Concurrency(n)),
            _ => {}
        }
        if !(0.0..=1.0).contains(&config.kept_memory) {
            return Err(BuildError::KeptMemory(config.kept_memory));
        }
        if config.lease < Duration::from_secs(1) {
            return Err(BuildError::ShortLease(config.lease));
        }
        config.heartbeat = self.heartbeat.unwrap_or(config.lease / 3);
        if config.heartbeat > config.lease / 3 {
            return Err(BuildError::SlowHeartbeat {
                heartbeat: config.heartbeat,
                lease: config.lease,
            });
        }
        let durations = [
            ("heartbeat", config.heartbeat),
            ("scan_interval", config.scan),
            ("sweep_interval", config.sweep_interval),
        ];
        let zero = durations
            .iter()
            .find(|(_, d)| *d < Duration::from_millis(1));
        if let Some((name, _)) = zero {
            return Err(BuildError::ZeroDuration(name));
        }
        let maybe_zero = [
            ("lease", config.lease),
            ("clock_skew", config.clock_skew),
            ("lost_lease_delay", config.lost_lease_delay),
            ("archive_limits", config.archive_age),
            ("keep_for_hooks", config.keep_for_hooks),
            ("shutdown_grace", config.shutdown_grace),
            ("cancel_grace", config.cancel_grace),
        ];
        let mut all = maybe_zero.iter().chain(&durations);
        if let Some((name, _)) = all.find(|(_, d)| *d > FAR) {
            return Err(BuildError::LongDuration(name));
        }
        let most = config.harmless_outage();
        if config.scan > most {
            return Err(BuildError::SlowScan {
                scan: config.scan,
                lease: config.lease,
                most,
            });
        }
        Ok(())
    }
}

impl std::fmt::Debug for ServerBuilder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ServerBuilder")
            .field("redis", &self.redis)
            .field("queues", &self.queues)
            .finish_non_exhaustive()
    }
}
