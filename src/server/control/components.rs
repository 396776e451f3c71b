use std::sync::Arc;
use std::time::Duration;

use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::router::CancelReason;
use crate::server::claim::claimer::Claimer;
use crate::server::control::error::ServerError;
use crate::server::control::heartbeat::{Heartbeat, LAST_WORDS};
use crate::server::control::observer::Observer;
use crate::server::control::report::{Report, StillRunning};
use crate::server::observe::event::Event;
use crate::server::phase::Phase;
use crate::server::run::executor::Executor;
use crate::server::settle::settler::{SettleChannels, Settler};
use crate::server::shared::Shared;
use crate::server::shared::connections::Connections;
use crate::server::upkeep::forwarder::Forwarder;
use crate::server::upkeep::hooks::Hooks;
use crate::server::upkeep::janitor::Janitor;
use crate::server::upkeep::queue_watch::QueueWatch;
use crate::server::upkeep::recoverer::Recoverer;

// Together, these are what a shutdown may take beyond its graces: 4 s, so that it ends before
// Kubernetes kills at 30 s. The docs of `shutdown_grace` say so.

/// How much longer than a handler's grace its run may take to end.
const MARGIN: Duration = Duration::from_secs(1);
/// How long Redis may take to hear of what is left: how runs ended, and hooks that were cut off.
const LAST_SETTLES: Duration = Duration::from_secs(2);

/// The running components. Dropped without [`stop`](Self::stop), everything ends at once and leases
/// run out.
pub(crate) struct Components {
    pub(crate) shared: Arc<Shared>,
    claimer: JoinSet<()>,
    settler: JoinSet<()>,
    /// Those that nothing waits for.
    others: JoinSet<()>,
    runs: TaskTracker,
    close_settler: CancellationToken,
    hooks: JoinSet<()>,
    stop_hooks: CancellationToken,
    stop_heartbeat: CancellationToken,
    heartbeat_ended: CancellationToken,
    close_observer: CancellationToken,
    observer_ended: CancellationToken,
}

impl Components {
    pub(crate) fn start(
        shared: &Arc<Shared>,
        connections: Arc<Connections>,
        events: mpsc::Receiver<Event>,
    ) -> Result<Self, ServerError> {
        shared.vitals.begin();
        let (close_observer, observer_ended) = (CancellationToken::new(), CancellationToken::new());
        let ended = observer_ended.clone().drop_guard();
        if let Some(observer) = shared.config.observer.clone() {
            Observer {
                shared: shared.clone(),
                observer,
                events,
                close: close_observer.clone(),
            }
            .start(ended)
            .map_err(ServerError::Observer)?;
        }
        let (stop_heartbeat, seen) = (CancellationToken::new(), CancellationToken::new());
        let heartbeat_ended = CancellationToken::new();
        Heartbeat {
            shared: shared.clone(),
            connections: connections.clone(),
            begun: seen.clone(),
            stop: stop_heartbeat.clone(),
        }
        .start(heartbeat_ended.clone().drop_guard())
        .inspect_err(|_| close_observer.cancel())
        .map_err(ServerError::Heartbeat)?;

        let mut parts = Self {
            claimer: JoinSet::new(),
            settler: JoinSet::new(),
            others: JoinSet::new(),
            runs: TaskTracker::new(),
            close_settler: CancellationToken::new(),
            hooks: JoinSet::new(),
            stop_hooks: CancellationToken::new(),
            stop_heartbeat,
            heartbeat_ended,
            close_observer,
            observer_ended,
            shared: shared.clone(),
        };
        if shared.config.role.claims() {
            parts.claim(&connections, seen);
        } else {
            let watch = QueueWatch {
                shared: shared.clone(),
                connections: connections.clone(),
            };
            parts.others.spawn(watch.run());
        }
        let forwarder = Forwarder {
            shared: shared.clone(),
            connections: connections.clone(),
        };
        parts.others.spawn(forwarder.run());
        let recoverer = Recoverer::new(shared.clone(), connections.clone());
        parts.others.spawn(recoverer.run());
        let janitor = Janitor {
            shared: shared.clone(),
            connections: connections.clone(),
        };
        parts.others.spawn(janitor.run());
        if shared.routes.hooked_kinds().len() > 0 {
            let hooks = Hooks::new(shared.clone(), connections, parts.stop_hooks.clone());
            parts.hooks.spawn(hooks.run());
        }
        parts.others.spawn(tick(shared.clone()));
        Ok(parts)
    }

    /// Starts what claims, runs and settles tasks.
    fn claim(&mut self, connections: &Arc<Connections>, seen: CancellationToken) {
        let (shared, connections) = (&self.shared, connections.clone());
        let (channels, opened) = SettleChannels::new(shared.clone());
        let executor = Executor::new(shared.clone(), connections.clone(), channels);
        self.runs = executor.tracker();
        let settler = Settler {
            shared: shared.clone(),
            connections: connections.clone(),
            opened,
            close: self.close_settler.clone(),
        };
        self.settler.spawn(settler.run());
        let claimer = Claimer::new(shared.clone(), connections, executor, seen);
        self.claimer.spawn(claimer.run());
    }

    /// Waits until a component has ended that nobody asked to: it panicked.
    pub(crate) async fn died(&mut self) -> &'static str {
        let claimer = async {
            let ended = self.claimer.join_next().await;
            // A reaper has none; and it ends when it is asked to.
            if ended.is_none() || self.shared.phases.now() >= Phase::Stopping {
                std::future::pending::<()>().await;
            }
        };
        tokio::select! {
            () = claimer => "claimer",
            Some(_) = self.settler.join_next() => "settler",
            Some(_) = self.hooks.join_next() => "hooks",
            _ = self.others.join_next() => "forwarder, recoverer, janitor or queue watch",
            () = self.heartbeat_ended.cancelled() => "heartbeat",
        }
    }

    /// Ends in order: nothing new, wait, cancel, settle, and the heartbeat last. Each step has a limit,
    /// because Redis may be away.
    pub(crate) async fn stop(mut self) -> Report {
        let shared = self.shared.clone();
        let config = &shared.config;
        shared.phases.advance(Phase::Stopping);
        tracing::info!(
            server.id = &*shared.id,
            running = shared.running.len(),
            "the server stops"
        );
        self.runs.close();
        let by_themselves = async {
            while self.claimer.join_next().await.is_some() {}
            self.runs.wait().await;
        };
        tokio::select! {
            () = by_themselves => {}
            () = sleep(config.shutdown_grace) => {}
            () = shared.phases.reached(Phase::Hurrying) => {}
        }
        shared.running.cancel_all(CancelReason::Shutdown);
        let cancelled = async {
            while self.claimer.join_next().await.is_some() {}
            // What a late claim has brought.
            shared.running.cancel_all(CancelReason::Shutdown);
            self.runs.wait().await;
        };
        let _ = timeout(config.cancel_grace + MARGIN, cancelled).await;
        // A claim that Redis has not answered until now is given up: leases that it took run out.
        self.claimer.shutdown().await;

        self.close_settler.cancel();
        self.stop_hooks.cancel();
        let told = async { tokio::join!(self.settler.join_next(), self.hooks.join_next()) };
        let _ = timeout(LAST_SETTLES, told).await;
        self.others.shutdown().await;

        self.stop_heartbeat.cancel();
        self.close_observer.cancel();
        let last_words = async {
            tokio::join!(
                self.heartbeat_ended.cancelled(),
                self.observer_ended.cancelled(),
            )
        };
        let _ = timeout(LAST_WORDS, last_words).await;
        shared.log_limit.tell_all_suppressed(&shared.id);
        shared.phases.advance(Phase::Stopped);
        self.report()
    }

    fn report(&self) -> Report {
        let mut report = Report {
            stats: self.shared.stats(),
            ..Report::default()
        };
        let (settling, running): (Vec<_>, Vec<_>) = self
            .shared
            .running
            .list()
            .into_iter()
            .partition(|attempt| attempt.is_settling());
        report.unsettled = settling.len();
        let mut leaks = self.shared.leaks.list();
        leaks.retain(|leak| running.iter().all(|attempt| attempt.number != leak.number));
        let still_running = running.iter().chain(&leaks);
        report.still_running = still_running.map(|it| StillRunning::new(it)).collect();
        tracing::info!(
            server.id = &*self.shared.id,
            completed = report.stats.completed,
            released = report.stats.released,
            still_running = report.still_running.len(),
            unsettled = report.unsettled,
            hooks_cut = report.stats.hooks_cut,
            "the server has stopped"
        );
        report
    }
}

impl Drop for Components {
    fn drop(&mut self) {
        self.shared.phases.advance(Phase::Stopped);
        // First, or chance would decide whose end is still told of: all leases run out.
        self.settler.abort_all();
        self.shared.running.cancel_all(CancelReason::Shutdown);
        self.stop_heartbeat.cancel();
        self.close_observer.cancel();
    }
}

/// Shows that the runtime runs, and says what the logs have held back.
async fn tick(shared: Arc<Shared>) {
    loop {
        shared.vitals.runtime_ran();
        shared.log_limit.tell_suppressed(&shared.id);
        sleep(Duration::from_millis(500)).await;
    }
}
