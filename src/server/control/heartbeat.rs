use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use tokio_util::sync::{CancellationToken, DropGuard};

use crate::broker::{
    BrokerError, Extended, Fault, LeaseHolder, Queue, Subscription, announce, extend, list_queues,
    publish, retire,
};
use crate::defaults::{RECONNECT_CAP, SCRIPT_TASKS};
use crate::router::CancelReason;
use crate::server::observe::event::Event;
use crate::server::observe::log_limit::log_limited;
use crate::server::shared::Shared;
use crate::server::shared::attempt::Attempt;
use crate::server::shared::backoff::Backoff;
use crate::server::shared::connections::Connections;
use crate::server::shared::each_queue::EachQueue;

/// How long a server's farewell and its observer's last events may take.
pub(crate) const LAST_WORDS: Duration = Duration::from_secs(1);
/// How many running tasks a server's record names.
const TASKS_SHOWN: usize = 100;

/// Keeps this server's leases alive and shows that it lives. It has a thread, a runtime and a
/// connection of its own, so that handlers that block the main runtime lose no lease.
pub(crate) struct Heartbeat {
    pub(crate) shared: Arc<Shared>,
    pub(crate) connections: Arc<Connections>,
    /// Fires once a beat has reached Redis.
    pub(crate) begun: CancellationToken,
    pub(crate) stop: CancellationToken,
}

/// What a beat does for each queue.
struct BeatQueues {
    extend: EachQueue,
    register: EachQueue,
}

impl Default for BeatQueues {
    fn default() -> Self {
        Self {
            extend: EachQueue::new("heartbeat"),
            register: EachQueue::new("registration of hooks"),
        }
    }
}

impl Heartbeat {
    /// Starts the thread; `ended` is dropped when it ends.
    pub(crate) fn start(self, ended: DropGuard) -> std::io::Result<()> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        std::thread::Builder::new()
            .name("windlass-heartbeat".into())
            .spawn(move || {
                runtime.block_on(self.run());
                drop(ended);
            })
            .map(drop)
    }

    async fn run(self) {
        tokio::select! {
            () = self.stop.cancelled() => {}
            () = self.beat_forever() => {}
            () = self.watch_runtime() => {}
            () = self.hear_cancels() => {}
        }
        let farewell = retire(
            &self.connections.heartbeat,
            &self.shared.keys,
            &self.shared.id,
        );
        if !matches!(tokio::time::timeout(LAST_WORDS, farewell).await, Ok(Ok(()))) {
            tracing::debug!(
                server.id = &*self.shared.id,
                "could not say farewell; the server's record runs out"
            );
        }
    }

    async fn beat_forever(&self) {
        let mut backoff = Backoff::new("heartbeat");
        let mut queues = BeatQueues::default();
        let interval = self.shared.config.heartbeat;
        loop {
            let sent = Instant::now();
            let beat = self.beat(&mut queues).await;
            // A Redis that refuses a beat may still give work; one that is away gives none.
            if !matches!(&beat, Err(error) if error.fault() == Fault::Reconnect) {
                self.begun.cancel();
                self.shared.witness.answered(sent);
            }
            let pause = match beat {
                Ok(()) => {
                    backoff.worked(&self.shared);
                    self.shared.vitals.heartbeat_reached_redis();
                    let retry = queues.extend.next_ready();
                    let retry = retry.map(|at| at.saturating_duration_since(Instant::now()));
                    retry.map_or(interval, |retry| retry.min(interval))
                }
                // Once Redis is back, leases are extended at once.
                Err(error) => backoff.failed(&self.shared, &error).min(interval),
            };
            tokio::time::sleep(pause).await;
        }
    }

    async fn beat(&self, each: &mut BeatQueues) -> Result<(), BrokerError> {
        let shared = &self.shared;
        let link = &self.connections.heartbeat;
        let attempts = shared.running.to_extend();
        let extend = |queue| self.extend_queue(queue, &attempts[queue]);
        each.extend.run(shared, attempts.keys(), extend).await?;
        // Whoever finds no record takes the server for dead, and its tasks over.
        let lives = shared.config.heartbeat * 3 + RECONNECT_CAP;
        publish(link, &shared.keys.server(&shared.id), lives, &self.record()).await?;
        announce(link, &shared.keys, &shared.id, lives).await?;
        let queues = shared.queues.now();
        if shared.routes.hooked_kinds().len() > 0 {
            let queues = queues.iter().map(|served| &served.queue);
            let register = |queue| shared.register_hooks(link, queue);
            each.register.run(shared, queues, register).await?;
        }
        // A reaper that looks after a queue makes it no queue with work.
        if shared.config.role.claims() && !queues.is_empty() {
            let names = queues.iter().map(|served| &served.queue.name);
            match list_queues(link, &shared.keys, names).await {
                Err(error) if error.fault() == Fault::Reconnect => return Err(error),
                // The set is a convenience: Redis may refuse it when memory is full, or to this user.
                Ok(()) | Err(_) => {}
            }
        }
        Ok(())
    }

    async fn extend_queue(
        &self,
        queue: &Queue,
        attempts: &[Arc<Attempt>],
    ) -> Result<(), BrokerError> {
        let shared = &self.shared;
        for attempts in attempts.chunks(SCRIPT_TASKS) {
            let tasks: Vec<_> = attempts.iter().map(|it| it.leased.clone()).collect();
            let link = &self.connections.heartbeat;
            let answers = extend(link, queue, shared.config.lease, &tasks).await?;
            for (attempt, answer) in attempts.iter().zip(answers) {
                match answer {
                    Extended::Done => {}
                    Extended::Cancelled => attempt.cancellation.cancel(CancelReason::Requested),
                    Extended::Lost if shared.running.lost(attempt) => {
                        self.lease_lost(attempt);
                    }
                    Extended::Lost => {}
                }
            }
        }
        Ok(())
    }

    fn lease_lost(&self, attempt: &Attempt) {
        let (shared, task) = (&self.shared, attempt.name());
        shared.counters.leases_lost.add(1);
        log_limited!(
            shared,
            &*task.queue.name,
            warn,
            "the task's lease was lost; its handler is cancelled",
            task.id = task.id,
            task.kind = task.kind,
            attempt = task.attempt,
        );
        shared.observe(|| Event::lease_lost(task));
    }

    /// What `HGETALL` of the server's key shows.
    fn record(&self) -> Vec<(&'static str, String)> {
        let shared = &self.shared;
        let queues = shared.queues.now();
        let claims = shared.config.role.claims();
        let queues = queues.iter().map(|q| match claims {
            true => format!("{}={}", q.queue.name, q.weight),
            false => q.queue.name.to_string(),
        });
        // Nobody claims from a queue that is only looked after.
        let queues_field = if claims { "queues" } else { "reaps" };
        let running = shared.running.list();
        let tasks = running.iter().take(TASKS_SHOWN).map(|attempt| {
            let Attempt {
                queue,
                leased,
                record,
                started,
                ..
            } = &**attempt;
            let seconds = started.elapsed().as_secs();
            format!("{} {} {} {seconds}s", queue.name, leased.id, record.kind)
        });
        let started_at = SystemTime::now() - shared.started.elapsed();
        let started_at = started_at.duration_since(UNIX_EPOCH).unwrap_or_default();
        vec![
            (
                "host",
                gethostname::gethostname().to_string_lossy().into_owned(),
            ),
            ("pid", std::process::id().to_string()),
            ("version", env!("CARGO_PKG_VERSION").to_owned()),
            ("started_at", started_at.as_millis().to_string()),
            ("phase", shared.phases.now().to_string()),
            ("concurrency", shared.config.concurrency.to_string()),
            (queues_field, queues.collect::<Vec<_>>().join(" ")),
            ("running", running.len().to_string()),
            ("tasks", tasks.collect::<Vec<_>>().join("\n")),
        ]
    }

    /// Cancels handlers when somebody asks for it. A message that is missed is found out by the next
    /// heartbeat.
    async fn hear_cancels(&self) {
        let mut backoff = Backoff::new("control channel");
        let channel = self.shared.keys.control(&self.shared.id);
        loop {
            match Subscription::open(&self.connections.endpoint, &channel).await {
                Ok(mut messages) => {
                    backoff.worked(&self.shared);
                    while let Some(message) = messages.next().await {
                        if let Some((number, id)) = message.split_once(' ') {
                            let holder = LeaseHolder::parse(number, &self.shared.id);
                            self.shared
                                .running
                                .cancel_leased(id, &holder, CancelReason::Requested);
                        }
                    }
                    let ended = BrokerError::disconnected("the control channel's connection ended");
                    backoff.wait(&self.shared, &ended).await;
                }
                Err(error) => {
                    let pause = backoff.failed(&self.shared, &error);
                    let pause = match error.fault() {
                        // A user who may not listen does without: the heartbeats tell it.
                        Fault::Permanent => pause.max(self.shared.config.heartbeat),
                        Fault::Reconnect | Fault::Wait => pause,
                    };
                    tokio::time::sleep(pause).await;
                }
            }
        }
    }

    /// Says so when the handlers' runtime stands still.
    async fn watch_runtime(&self) {
        loop {
            tokio::time::sleep(Duration::from_secs(1)).await;
            if let Some(blocked) = self.shared.vitals.runtime_blocked() {
                log_limited!(
                    self.shared,
                    "",
                    warn,
                    "the runtime stands still: a handler blocks it; register blocking handlers with blocking_task()",
                    ?blocked,
                );
                self.shared.observe(|| Event::RuntimeBlocked(blocked));
            }
        }
    }
}
