use std::sync::Arc;
use std::time::Instant;

use tokio::sync::mpsc::error::TrySendError;
use tokio::sync::{Semaphore, mpsc};

use crate::broker::Keys;
use crate::router::Routes;
use crate::server::Event;
use crate::server::control::phase::{Phase, Phases};
use crate::server::observe::health::Vitals;
use crate::server::observe::log_limit::LogLimit;
use crate::server::observe::stats::Counters;
use crate::server::queues::Queues;
use crate::server::run::leaks::Leaks;
use crate::server::run::running::Running;
use crate::server::setup::config::Config;
use crate::server::upkeep::due_times::DueTimes;
use crate::server::upkeep::hooks_owed::HooksOwed;
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
    /// Free places for handlers.
    pub(crate) slots: Arc<Semaphore>,
    pub(crate) running: Running,
    pub(crate) leaks: Leaks,
    pub(crate) due: DueTimes,
    pub(crate) hooks_owed: HooksOwed,
    pub(crate) counters: Counters,
    /// For the user's observer.
    pub(crate) events: mpsc::Sender<Event>,
    pub(crate) vitals: Vitals,
    /// Of trouble with Redis and the like.
    pub(crate) log_limit: LogLimit,
    /// Of tasks that fail; the observer hears of each.
    pub(crate) retry_log_limit: LogLimit,
    /// Of tasks that are given up, which must not drown in those that are retried.
    pub(crate) archive_log_limit: LogLimit,
}

impl Shared {
    /// Lets the user's observer, if there is one, be told of an event. Waits for nobody.
    pub(crate) fn observe(&self, event: impl FnOnce() -> Event) {
        if self.config.observer.is_none() {
            return;
        }
        if let Err(TrySendError::Full(_)) = self.events.try_send(event()) {
            self.counters.events_dropped.add(1);
            if let Some(suppressed) = self.log_limit.pass() {
                tracing::warn!(
                    server.id = &*self.id,
                    suppressed,
                    "the function given to on_event is too slow: it is not told of everything"
                );
            }
        }
    }

    /// Calls a user's function; when it panics, answers `otherwise`.
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
        if let Some(suppressed) = self.log_limit.pass() {
            tracing::error!(
                server.id = &*self.id,
                function,
                suppressed,
                "a function of the user's panicked: {panicked}"
            );
        }
    }

    /// Waits for `future`, unless the server becomes quiet first.
    pub(crate) async fn unless_quiet<T>(&self, future: impl Future<Output = T>) -> Option<T> {
        tokio::select! {
            biased;
            () = self.phases.reached(Phase::Quiet) => None,
            output = future => Some(output),
        }
    }

    /// Reports records that were set aside.
    pub(crate) fn malformed(&self, queue: &str, ids: &[String]) {
        for id in ids {
            if let Some(suppressed) = self.log_limit.pass() {
                tracing::error!(task.id = %id, queue, suppressed, "a malformed record was set aside");
            }
            self.observe(|| Event::Malformed {
                id: id.clone(),
                queue: queue.to_owned(),
            });
        }
    }
}
