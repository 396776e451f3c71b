//! What the rooms of a server share: the state in which its components meet ([`Shared`]), its settings and
//! connections, the attempts that run, and how each waits for a Redis that fails it. It knows no other room
//! but `observe`.

pub(crate) mod attempt;
pub(crate) mod backoff;
pub(crate) mod config;
pub(crate) mod connections;
pub(crate) mod due_times;
pub(crate) mod each_queue;
pub(crate) mod failed_attempt;
pub(crate) mod hooks_owed;
pub(crate) mod leaks;
pub(crate) mod queues;
pub(crate) mod retry_delay;
pub(crate) mod running;
pub(crate) mod witness;

use std::sync::Arc;
use std::time::Instant;

use tokio::sync::mpsc::error::TrySendError;
use tokio::sync::{Semaphore, mpsc};

use crate::broker::{BrokerError, Keys, Query, Queue, register_hooks};
use crate::defaults::EVENTS;
use crate::router::Routes;
use crate::server::observe::event::Event;
use crate::server::observe::event_task::EventTask;
use crate::server::observe::health::Vitals;
use crate::server::observe::log_limit::{LogLimit, log_limited};
use crate::server::observe::stats::{Counters, Stats};
use crate::server::phase::{Phase, Phases};
use crate::server::shared::config::Config;
use crate::server::shared::due_times::DueTimes;
use crate::server::shared::hooks_owed::HooksOwed;
use crate::server::shared::leaks::Leaks;
use crate::server::shared::queues::{Queues, ServedQueue};
use crate::server::shared::running::Running;
use crate::server::shared::witness::Witness;
use crate::task::generate_id;
use crate::user_code::{Panicked, catch};

/// What the components of one server share. No component holds another; they meet here.
pub(crate) struct Shared {
    pub(crate) id: Arc<str>,
    pub(crate) started: Instant,
    pub(crate) config: Config,
    pub(crate) routes: Routes,
    pub(crate) keys: Keys,
    pub(crate) queues: Queues,
    pub(crate) phases: Phases,
    /// One for each handler that may run.
    pub(crate) slots: Arc<Semaphore>,
    pub(crate) running: Running,
    pub(crate) leaks: Leaks,
    pub(crate) due: DueTimes,
    pub(crate) hooks_owed: HooksOwed,
    pub(crate) counters: Counters,
    /// For the user's observer.
    pub(crate) events: mpsc::Sender<Event>,
    pub(crate) vitals: Vitals,
    pub(crate) witness: Witness,
    pub(crate) log_limit: LogLimit,
}

impl Shared {
    /// Of a server that has not started, and where its events come out.
    pub(crate) fn new(
        config: Config,
        routes: Routes,
        keys: Keys,
        served: Vec<ServedQueue>,
    ) -> (Arc<Self>, mpsc::Receiver<Event>) {
        let (events, received) = mpsc::channel(EVENTS);
        let shared = Self {
            id: generate_id().into(),
            started: Instant::now(),
            slots: Arc::new(Semaphore::new(config.concurrency)),
            witness: Witness::new(config.harmless_outage()),
            config,
            routes,
            keys,
            queues: Queues::new(served),
            phases: Default::default(),
            running: Default::default(),
            leaks: Default::default(),
            due: Default::default(),
            hooks_owed: Default::default(),
            counters: Default::default(),
            events,
            vitals: Default::default(),
            log_limit: Default::default(),
        };
        (Arc::new(shared), received)
    }

    /// What the server has done so far.
    pub(crate) fn stats(&self) -> Stats {
        Stats {
            leaked: self.leaks.count() as u64,
            ..self.counters.read()
        }
    }

    /// Lets the user's observer, if there is one, be told of an event. Waits for nobody.
    pub(crate) fn observe(&self, event: impl FnOnce() -> Event) {
        if self.config.observer.is_none() {
            return;
        }
        if let Err(TrySendError::Full(_)) = self.events.try_send(event()) {
            self.counters.events_dropped.add(1);
            log_limited!(
                self,
                "",
                warn,
                "the function given to on_event is too slow: it is not told of everything"
            );
        }
    }

    /// Calls a user's function; when it panics, returns `otherwise`.
    pub(crate) fn call<T>(
        &self,
        name: &'static str,
        call: impl FnOnce() -> T,
        otherwise: impl FnOnce() -> T,
    ) -> T {
        catch(call).unwrap_or_else(|panicked| {
            self.callback_panicked(name, &panicked);
            self.observe(|| Event::CallbackPanicked(name));
            otherwise()
        })
    }

    pub(crate) fn callback_panicked(&self, function: &'static str, panicked: &Panicked) {
        self.counters.panics.add(1);
        log_limited!(
            self, "", error, "a function of the user's panicked",
            function,
            panic = %panicked,
        );
    }

    /// Lets a quiet server claim again.
    pub(crate) fn resume(&self) {
        self.vitals.claims_again();
        self.phases.resume();
    }

    /// Waits for `future`, unless the server becomes quiet first.
    pub(crate) async fn unless_quiet<T>(&self, future: impl Future<Output = T>) -> Option<T> {
        tokio::select! {
            biased;
            () = self.phases.reached(Phase::Quiet) => None,
            output = future => Some(output),
        }
    }

    /// Notes in a queue the kinds that this server has dead-letter hooks for, if there are any.
    pub(crate) async fn register_hooks(
        &self,
        redis: &impl Query,
        queue: &Queue,
    ) -> Result<(), BrokerError> {
        let kinds = self.routes.hooked_kinds();
        if kinds.len() == 0 {
            return Ok(());
        }
        register_hooks(redis, queue, self.config.hooks_last(), kinds).await
    }

    /// Reports records that were set aside.
    pub(crate) fn malformed(&self, queue: &str, ids: &[String]) {
        for id in ids {
            log_limited!(self, queue, error, "a malformed record was set aside", task.id = %id);
            self.observe(|| Event::malformed(EventTask::new(id, "", queue)));
        }
    }
}
