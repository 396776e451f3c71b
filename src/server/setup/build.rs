use std::sync::Arc;

use futures::stream::{self, StreamExt, TryStreamExt};

use crate::broker::{Queue, check_redis, list_of_queues, register_hooks};
use crate::router::{Router, Routes};
use crate::server::control::server::Server;
use crate::server::control::signals::Signals;
use crate::server::setup::builder::ServerBuilder;
use crate::server::setup::error::BuildError;
use crate::server::shared::Shared;
use crate::server::shared::config::Role;
use crate::server::shared::connections::Connections;
use crate::server::shared::each_queue::QUEUES_AT_ONCE;
use crate::server::shared::queues::ServedQueue;
use crate::user_code::install_panic_hook;

impl ServerBuilder {
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
        let (shared, events) = Shared::new(self.config, routes, keys, served);
        Ok(Server {
            shared,
            connections: Arc::new(connections),
            events,
            signals,
            redis_version: redis.version,
        })
    }
}
