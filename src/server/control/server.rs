use std::fmt;
use std::sync::Arc;

use tokio::sync::mpsc;

use crate::server::control::components::Components;
use crate::server::control::error::ServerError;
use crate::server::control::handle::ServerHandle;
use crate::server::control::report::Report;
use crate::server::control::signals::Signals;
use crate::server::observe::event::Event;
use crate::server::phase::Phase;
use crate::server::shared::Shared;
use crate::server::shared::connections::Connections;

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
    pub(crate) shared: Arc<Shared>,
    pub(crate) connections: Arc<Connections>,
    pub(crate) events: mpsc::Receiver<Event>,
    /// Where a signal would be lost otherwise: those since the server was built.
    pub(crate) signals: Option<Signals>,
    /// As Redis told it when the server was built.
    pub(crate) redis_version: Option<String>,
}

impl Server {
    /// To steer and watch it while it runs.
    pub fn handle(&self) -> ServerHandle {
        ServerHandle {
            shared: self.shared.clone(),
        }
    }

    /// Runs until SIGTERM, SIGINT, SIGHUP or [`ServerHandle::stop`]; a second one hurries it. SIGTSTP
    /// makes it [quiet](ServerHandle::quiet), and SIGCONT undoes that.
    ///
    /// - A signal that comes before this is called does not get lost: either it ends the process, as
    ///   it does any other, or the server has heard it since it was [built](crate::server::ServerBuilder::build), and
    ///   then claims nothing.
    /// - SIGHUP is left alone where the process ignores it, as under `nohup`, or takes it for another
    ///   purpose before its first server is built; and on systems other than Linux, which do not tell.
    /// - The signals stay taken after this has returned: they do not end the process any more. So one
    ///   that goes on needs handlers of its own, such as those of `tokio::signal`, or to call
    ///   [`run_until`](Self::run_until) from the beginning.
    ///
    /// # Errors
    /// A thread or the signal handlers could not be set up, or a part of the server panicked. A Redis
    /// that is away is no error: it is waited for.
    pub async fn run(mut self) -> Result<Report, ServerError> {
        let signals = match self.signals.take() {
            Some(signals) => signals,
            None => Signals::listen().map_err(ServerError::Signals)?,
        };
        let shared = self.shared.clone();
        // The runtime passes a signal on only when it has nothing else to do.
        tokio::task::yield_now().await;
        tokio::select! {
            biased;
            never = signals.obey(&shared) => match never {},
            report = self.run_until(std::future::pending()) => report,
        }
    }

    /// Runs until `stop` is ready or [`ServerHandle::stop`] is called; installs no signal handler.
    ///
    /// # Errors
    /// As [`run`](Self::run).
    pub async fn run_until(self, stop: impl Future<Output = ()>) -> Result<Report, ServerError> {
        let shared = self.shared.clone();
        self.log_start();
        let started = Components::start(&shared, self.connections, self.events);
        let mut parts = started.inspect_err(|_| shared.phases.advance(Phase::Stopped))?;
        let died = tokio::select! {
            () = stop => None,
            () = shared.phases.reached(Phase::Stopping) => None,
            component = parts.died() => Some(component),
        };
        if let Some(component) = died {
            shared.vitals.died(component);
        }
        let report = parts.stop().await;
        match died {
            None => Ok(report),
            Some(component) => Err(ServerError::Died(component)),
        }
    }

    /// What an operator who reads the log needs to know of it.
    fn log_start(&self) {
        let shared = &self.shared;
        let queues = shared.queues.now();
        let mut kinds: Vec<_> = shared.routes.kinds().collect();
        kinds.sort_unstable();
        tracing::info!(
            server.id = &*shared.id,
            reaper = !shared.config.role.claims(),
            redis.address = self.connections.endpoint.address(),
            redis.version = self.redis_version,
            queues = ?queues.iter().map(|served| &*served.queue.name).collect::<Vec<_>>(),
            ?kinds,
            concurrency = shared.config.concurrency,
            "the server starts"
        );
    }
}

impl fmt::Debug for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Server")
            .field("id", &self.shared.id)
            .finish_non_exhaustive()
    }
}
