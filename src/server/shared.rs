use std::sync::Arc;
use std::time::Instant;

use tokio::sync::mpsc::error::TrySendError;
use tokio::sync::{Semaphore, mpsc};

use super::Event;
use super::config::Config;
use super::forwarder::DueTimes;
use super::health::Vitals;
use super::hooks::HooksOwed;
use super::leaks::Leaks;
use super::log_limit::LogLimit;
use super::phase::{Phase, Phases};
use super::queues::Queues;
use super::running::Running;
use super::stats::Counters;
use crate::broker::Keys;
use crate::router::{Panicked, Routes, catch};

/// What the components of one server share. No component holds another; they meet here.
pub(super) struct Shared {
    pub(super) id: Arc<str>,
    pub(super) started: Instant,
    pub(super) config: Config,
    pub(super) routes: Routes,
    pub(super) keys: Keys,
    pub(super) queues: Queues,
    pub(super) phases: Phases,
    /// Free places for handlers.
    pub(super) slots: Arc<Semaphore>,
    pub(super) running: Running,
    pub(super) leaks: Leaks,
    pub(super) due: DueTimes,
    pub(super) hooks_owed: HooksOwed,
    pub(super) counters: Counters,
    /// For the user's observer.
    pub(super) events: mpsc::Sender<Event>,
    pub(super) vitals: Vitals,
    /// Of trouble with Redis and the like.
    pub(super) log_limit: LogLimit,
    /// Of tasks that fail; the observer hears of each.
    pub(super) retry_log_limit: LogLimit,
    /// Of tasks that are given up, which must not drown in those that are retried.
    pub(super) archive_log_limit: LogLimit,
}

impl Shared {
    /// Lets the user's observer, if there is one, be told of an event. Waits for nobody.
    pub(super) fn observe(&self, event: impl FnOnce() -> Event) {
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
    pub(super) fn call<T>(
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

    pub(super) fn callback_panicked(&self, function: &'static str, panicked: &Panicked) {
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
    pub(super) async fn unless_quiet<T>(&self, future: impl Future<Output = T>) -> Option<T> {
        tokio::select! {
            biased;
            () = self.phases.reached(Phase::Quiet) => None,
            output = future => Some(output),
        }
    }

    /// Reports records that were set aside.
    pub(super) fn malformed(&self, queue: &str, ids: &[String]) {
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
