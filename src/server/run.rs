use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use thiserror::Error;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::claimer::Claimer;
use super::connections::Connections;
use super::executor::Executor;
use super::forwarder::Forwarder;
use super::heartbeat::Heartbeat;
use super::hooks::Hooks;
use super::janitor::Janitor;
use super::observer::Observer;
use super::outbox::Outbox;
use super::phase::Phase;
use super::recoverer::Recoverer;
use super::running::Run;
use super::settler::Settler;
use super::shared::Shared;
use super::signals::Signals;
use super::{Event, Report, ServerBuilder, ServerHandle, StillRunning};
use crate::router::CancelReason;

// Together, these are what a shutdown may take beyond its graces: 4 s, so that it ends before
// Kubernetes kills at 30 s. The docs of `shutdown_grace` say so.

/// How much longer than a handler's grace its run may take to end.
const MARGIN: Duration = Duration::from_secs(1);
/// How long Redis may take to hear of what is left: how runs ended, and hooks that were cut off.
const LAST_SETTLES: Duration = Duration::from_secs(2);
/// How long a server's farewell and its observer's last events may take.
pub(super) const LAST_WORDS: Duration = Duration::from_secs(1);

/// A worker: runs the handlers of a [`Router`](crate::Router) for the tasks of its queues.
///
/// ```no_run
/// # use serde::{Deserialize, Serialize};
/// # #[derive(Serialize, Deserialize)] struct SendEmail { to: String }
/// # impl windlass::Task for SendEmail { const KIND: &'static str = "email:send"; }
/// use windlass::{Router, Server};
///
/// async fn send_email(task: SendEmail) -> Result<(), std::io::Error> {
///     println!("to {}", task.to);
///     Ok(())
/// }
///
/// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
/// let server = Server::builder()
///     .redis("redis://127.0.0.1/")
///     .queues([("critical", 6), ("default", 3)])
///     .build(Router::new().task(send_email))
///     .await?;
/// let report = server.run().await?; // until SIGTERM or SIGINT
/// println!("{} tasks completed", report.stats.completed);
/// # Ok(()) }
/// ```
pub struct Server {
    pub(super) shared: Arc<Shared>,
    pub(super) connections: Arc<Connections>,
    pub(super) events: mpsc::Receiver<Event>,
}

/// Why a server could not run.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ServerError {
    /// The heartbeat's thread could not be started.
    #[error("the heartbeat's thread could not be started")]
    Heartbeat(#[source] std::io::Error),
    /// The thread for the function given to [`on_event`](ServerBuilder::on_event) could not be started.
    #[error("the observer's thread could not be started")]
    Observer(#[source] std::io::Error),
    /// A part of the server panicked. What ran was handed back; start the process anew.
    #[error("the {0} ended unasked, so the server was stopped: restart it, and report this")]
    Died(&'static str),
    /// The signal handlers could not be installed.
    #[error("the signal handlers could not be installed")]
    Signals(#[source] std::io::Error),
}

impl Server {
    /// Settings for a server.
    pub fn builder() -> ServerBuilder {
        ServerBuilder::default()
    }

    /// To steer and watch it while it runs.
    pub fn handle(&self) -> ServerHandle {
        ServerHandle {
            shared: self.shared.clone(),
        }
    }

    /// Runs until SIGTERM, SIGINT or [`ServerHandle::stop`]; SIGTSTP makes it quiet, and a second
    /// SIGTERM or SIGINT hurries it.
    ///
    /// # Errors
    /// A thread or the signal handlers could not be set up, or a part of the server panicked. A Redis
    /// that is away is no error: it is waited for.
    pub async fn run(self) -> Result<Report, ServerError> {
        let signals = Signals::install().map_err(ServerError::Signals)?;
        let shared = self.shared.clone();
        let work = self.run_until(std::future::pending());
        tokio::pin!(work);
        tokio::select! {
            report = &mut work => report,
            () = signals.obey(&shared) => work.await,
        }
    }

    /// Runs until `stop` is ready or [`ServerHandle::stop`] is called; installs no signal handler.
    ///
    /// # Errors
    /// As [`run`](Self::run).
    pub async fn run_until(self, stop: impl Future<Output = ()>) -> Result<Report, ServerError> {
        let mut parts = Parts::start(self)?;
        let shared = parts.shared.clone();
        tracing::info!(
            server.id = &*shared.id,
            queues = ?shared.queues.now().iter().map(|served| &*served.queue.name).collect::<Vec<_>>(),
            concurrency = shared.config.concurrency,
            "the server starts"
        );
        let died = tokio::select! {
            () = stop => None,
            () = shared.phases.reached(Phase::Stopping) => None,
            component = parts.died() => Some(component),
        };
        let report = parts.stop().await;
        match died {
            None => Ok(report),
            Some(component) => Err(ServerError::Died(component)),
        }
    }
}

impl fmt::Debug for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Server")
            .field("id", &self.shared.id)
            .finish_non_exhaustive()
    }
}

/// The running components. Dropped without [`stop`](Self::stop), everything ends at once and leases
/// run out.
struct Parts {
    shared: Arc<Shared>,
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

impl Parts {
    fn start(server: Server) -> Result<Self, ServerError> {
        let Server {
            shared,
            connections,
            events,
        } = server;
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

        let (outbox, opened) = Outbox::new(shared.clone());
        let executor = Executor::new(shared.clone(), connections.clone(), outbox);
        let runs = executor.tracker();
        let mut parts = Self {
            claimer: JoinSet::new(),
            settler: JoinSet::new(),
            others: JoinSet::new(),
            runs,
            close_settler: CancellationToken::new(),
            hooks: JoinSet::new(),
            stop_hooks: CancellationToken::new(),
            stop_heartbeat,
            heartbeat_ended,
            close_observer,
            observer_ended,
            shared: shared.clone(),
        };
        let settler = Settler {
            shared: shared.clone(),
            connections: connections.clone(),
            opened,
            close: parts.close_settler.clone(),
        };
        parts.settler.spawn(settler.run());
        parts
            .claimer
            .spawn(Claimer::new(shared.clone(), connections.clone(), executor, seen).run());
        let forwarder = Forwarder {
            shared: shared.clone(),
            connections: connections.clone(),
        };
        parts.others.spawn(forwarder.run());
        let recoverer = Recoverer {
            shared: shared.clone(),
            connections: connections.clone(),
        };
        parts.others.spawn(recoverer.run());
        let janitor = Janitor {
            shared: shared.clone(),
            connections: connections.clone(),
        };
        parts.others.spawn(janitor.run());
        let hooks = Hooks {
            shared: shared.clone(),
            connections,
            stop: parts.stop_hooks.clone(),
        };
        parts.hooks.spawn(hooks.run());
        parts.others.spawn(show_that_the_runtime_runs(shared));
        Ok(parts)
    }

    /// Waits until a component has ended that nobody asked to: it panicked.
    async fn died(&mut self) -> &'static str {
        let claimer = async {
            self.claimer.join_next().await;
            // A quiet server's claimer ends because it was asked to.
            if self.shared.phases.now() >= Phase::Quiet {
                std::future::pending::<()>().await;
            }
        };
        tokio::select! {
            () = claimer => "claimer",
            _ = self.settler.join_next() => "settler",
            _ = self.others.join_next() => "forwarder, recoverer or janitor",
            () = self.heartbeat_ended.cancelled() => "heartbeat",
        }
    }

    /// Ends in order: nothing new, wait, cancel, settle, and the heartbeat last. Each step has a limit,
    /// because Redis may be away.
    async fn stop(mut self) -> Report {
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
        self.report()
    }

    fn report(&self) -> Report {
        let mut report = Report {
            stats: self.shared.counters.read(),
            ..Report::default()
        };
        let (settling, running): (Vec<_>, Vec<_>) = self
            .shared
            .running
            .list()
            .into_iter()
            .partition(|run| run.settling);
        report.unsettled = settling.len();
        let mut leaks = self.shared.leaks.list();
        leaks.retain(|leak| {
            let same = |run: &Run| run.queue == leak.queue && run.leased == leak.leased;
            !running.iter().any(same)
        });
        let running = running
            .iter()
            .map(|run| StillRunning::new(&run.queue, &run.leased, &run.kind, run.started));
        let leaked = leaks
            .iter()
            .map(|leak| StillRunning::new(&leak.queue, &leak.leased, &leak.kind, leak.started));
        report.still_running = running.chain(leaked).collect();
        tracing::info!(
            server.id = &*self.shared.id,
            completed = report.stats.completed,
            released = report.stats.released,
            still_running = report.still_running.len(),
            unsettled = report.unsettled,
            "the server has stopped"
        );
        report
    }
}

impl Drop for Parts {
    fn drop(&mut self) {
        self.shared.phases.advance(Phase::Hurrying);
        // First, or chance would decide whose end is still told of: all leases run out.
        self.settler.abort_all();
        self.shared.running.cancel_all(CancelReason::Shutdown);
        self.stop_heartbeat.cancel();
        self.close_observer.cancel();
    }
}

async fn show_that_the_runtime_runs(shared: Arc<Shared>) {
    loop {
        shared.vitals.runtime_ran();
        sleep(Duration::from_millis(500)).await;
    }
}
