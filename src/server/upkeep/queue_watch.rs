use std::collections::BTreeSet;
use std::sync::Arc;

use crate::broker::{BrokerError, Queue, list_of_queues, queues_with_any, unserved};
use crate::server::shared::Shared;
use crate::server::shared::backoff::Backoff;
use crate::server::shared::config::Role;
use crate::server::shared::connections::Connections;
use crate::server::shared::queues::ServedQueue;

/// How many names a line of the log has at most.
const QUEUES_SHOWN: usize = 20;

/// Of a reaper: finds queues that are new, if it looks after all, and says which of its queues have tasks
/// and no worker.
pub(crate) struct QueueWatch {
    pub(crate) shared: Arc<Shared>,
    pub(crate) connections: Arc<Connections>,
}

impl QueueWatch {
    pub(crate) async fn run(self) {
        let mut backoff = Backoff::new("queue watch");
        loop {
            match self.look().await {
                Ok(()) => {
                    backoff.worked(&self.shared);
                    // As often as servers write what they serve.
                    tokio::time::sleep(self.shared.config.heartbeat).await;
                }
                Err(error) => backoff.wait(&self.shared, &error).await,
            }
        }
    }

    async fn look(&self) -> Result<(), BrokerError> {
        let shared = &self.shared;
        let redis = self.connections.pool.lend().await?;
        let looks_after_all = Role::Reaper {
            of_all_queues: true,
        };
        if shared.config.role == looks_after_all {
            self.follow(list_of_queues(&redis, &shared.keys).await?);
        }
        let queues = shared.queues.now();
        let queues = queues.iter().map(|served| &served.queue);
        let unserved = unserved(&redis, &shared.keys, queues).await?;
        let tasks = ["pending", "active", "scheduled", "retry"];
        let with_tasks = queues_with_any(&redis, &unserved, &tasks).await?;
        let names = with_tasks
            .into_iter()
            .map(|place| unserved[place].name.to_string());
        self.tell(names.collect());
        Ok(())
    }

    /// Looks after these queues from now on.
    fn follow(&self, queues: Vec<Queue>) {
        self.shared.queues.change(|known| {
            let is_known = queues.len() == known.len()
                && queues
                    .iter()
                    .zip(known)
                    .all(|(queue, known)| *queue == known.queue);
            (!is_known).then(|| queues.into_iter().map(ServedQueue::unweighted).collect())
        });
    }

    fn tell(&self, unserved: BTreeSet<String>) {
        let before = self.shared.vitals.unserved_are(unserved.clone());
        let new: Vec<_> = unserved.difference(&before).collect();
        if !new.is_empty() {
            tracing::warn!(
                server.id = &*self.shared.id,
                queues = ?&new[..new.len().min(QUEUES_SHOWN)],
                count = new.len(),
                "queues have tasks, and no worker serves them"
            );
        }
    }
}
