use std::fmt;
use std::sync::Arc;

use thiserror::Error;

use crate::server::observe::health::{Health, HealthProblem};
use crate::server::observe::stats::Stats;
use crate::server::phase::Phase;
use crate::server::shared::Shared;
use crate::server::shared::queues::ServedQueue;
use crate::task::{NameError, check_queue};

/// Steers and watches a server from anywhere, also from within its handlers. Cheap to clone.
#[derive(Clone)]
pub struct ServerHandle {
    pub(crate) shared: Arc<Shared>,
}

/// Why a queue was not added.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum QueueError {
    /// The name cannot be used.
    #[error(transparent)]
    Name(#[from] NameError),
    /// A weight of zero would starve it.
    #[error("queue {0:?} has weight 0: give at least 1")]
    ZeroWeight(String),
    /// The server serves it already.
    #[error("queue {0:?} is served already")]
    Twice(String),
}

impl ServerHandle {
    /// The server's id, new at each start.
    pub fn id(&self) -> &str {
        &self.shared.id
    }

    /// Asks the server to stop: it claims nothing more, waits for its handlers, cancels those that
    /// take too long, and hands back what has not ended. Returns at once; once more hurries it.
    pub fn stop(&self) {
        self.shared.phases.stop();
    }

    /// Asks the server to claim nothing more and to go on with what it has.
    pub fn quiet(&self) {
        self.shared.phases.advance(Phase::Quiet);
    }

    /// Lets a quiet server claim again. Does nothing to one that stops or has stopped.
    pub fn resume(&self) {
        self.shared.resume();
    }

    /// What the server is doing.
    pub fn phase(&self) -> Phase {
        self.health().phase
    }

    /// See [`Health::is_live`].
    pub fn is_live(&self) -> bool {
        self.health().is_live()
    }

    /// See [`Health::is_ready`].
    pub fn is_ready(&self) -> bool {
        self.health().is_ready()
    }

    /// Whether the server does its work, and what keeps it from that.
    pub fn health(&self) -> Health {
        let shared = &self.shared;
        let config = &shared.config;
        let phase = shared.phases.now();
        let mut health = (shared.vitals).health(phase, config.heartbeat, config.role.claims());
        let leaked = self.stats().leaked;
        if leaked > 0 {
            health.problems.push(HealthProblem::LeakedHandlers(leaked));
        }
        health
    }

    /// What the server has done so far.
    pub fn stats(&self) -> Stats {
        self.shared.stats()
    }

    /// How many tasks it holds at this moment.
    pub fn running(&self) -> usize {
        self.shared.running.len()
    }

    /// Serves one more queue, within a second.
    ///
    /// # Errors
    /// A bad name, a weight of 0, or a queue that is served already.
    pub fn add_queue(&self, name: &str, weight: u32) -> Result<(), QueueError> {
        check_queue(name)?;
        if weight == 0 {
            return Err(QueueError::ZeroWeight(name.to_owned()));
        }
        let added = self.shared.queues.change(|queues| {
            if queues.iter().any(|served| &*served.queue.name == name) {
                return None;
            }
            let mut queues = queues.to_vec();
            queues.push(ServedQueue {
                queue: self.shared.keys.queue(name),
                weight,
            });
            Some(queues)
        });
        if added {
            Ok(())
        } else {
            Err(QueueError::Twice(name.to_owned()))
        }
    }

    /// Serves a queue no longer, within a second; tasks of it that run go on. Answers whether it was
    /// served.
    pub fn remove_queue(&self, name: &str) -> bool {
        self.shared.queues.change(|queues| {
            let kept: Vec<_> = queues
                .iter()
                .filter(|q| &*q.queue.name != name)
                .cloned()
                .collect();
            (kept.len() < queues.len()).then_some(kept)
        })
    }
}

impl fmt::Debug for ServerHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServerHandle")
            .field("id", &self.shared.id)
            .finish_non_exhaustive()
    }
}
