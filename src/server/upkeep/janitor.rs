use std::collections::HashMap;
use std::sync::Arc;

use rand::random_range;

use crate::broker::{
    BrokerError, KeptBytes, Lent, Queue, RecordScan, SweepRequest, adopt, lapse_hooks,
    queues_with_any, sweep,
};
use crate::server::observe::event::Event;
use crate::server::observe::log_limit::log_limited;
use crate::server::settle::report;
use crate::server::shared::Shared;
use crate::server::shared::backoff::Backoff;
use crate::server::shared::connections::Connections;
use crate::server::shared::each_queue::EachQueue;
use crate::server::upkeep::kept_memory::to_shed;

/// Keeps Redis tidy: completed tasks leave at the end of their retention, archives stay within their
/// caps, and records that stand in no state are found. All in bounded steps.
pub(crate) struct Janitor {
    pub(crate) shared: Arc<Shared>,
    pub(crate) connections: Arc<Connections>,
}

impl Janitor {
    pub(crate) async fn run(self) {
        let mut backoff = Backoff::new("janitor");
        let mut each_queue = EachQueue::new("janitor");
        let mut scan = RecordScan::default();
        loop {
            match self.round(&mut each_queue, &mut scan).await {
                Ok(()) => {
                    backoff.worked(&self.shared);
                    // The jitter keeps many servers from sweeping in step.
                    let pause = self.shared.config.sweep_interval;
                    tokio::time::sleep(pause.mul_f64(random_range(0.8..1.0))).await;
                }
                Err(error) => backoff.wait(&self.shared, &error).await,
            }
        }
    }

    async fn round(
        &self,
        each_queue: &mut EachQueue,
        scan: &mut RecordScan,
    ) -> Result<(), BrokerError> {
        let redis = self.connections.pool.lend().await?;
        let served = self.shared.queues.now();
        let queues: Vec<_> = served.iter().map(|served| &served.queue).collect();
        let full = queues_with_any(&redis, &queues, &["archived", "completed"]).await?;
        let full: Vec<_> = full.into_iter().map(|place| queues[place]).collect();
        let shed = to_shed(&self.shared, &redis, &full).await?;
        let sweep = |queue| {
            let shed = shed.get(queue).copied().unwrap_or_default();
            self.sweep(&redis, queue, shed)
        };
        each_queue.run(&self.shared, full, sweep).await?;
        self.find_strays(&redis, scan).await
    }

    async fn sweep(
        &self,
        redis: &Lent<'_>,
        queue: &Queue,
        shed: KeptBytes,
    ) -> Result<(), BrokerError> {
        let config = &self.shared.config;
        let lapsed = lapse_hooks(redis, queue, config.hooks_last()).await?;
        if !lapsed.is_empty() {
            tracing::info!(
                queue = &*queue.name,
                kinds = ?lapsed,
                "no server has a dead-letter hook for these kinds any more"
            );
        }
        let (mut completed, mut archived, mut hooks_dropped) = (0, 0, 0);
        let (mut tasks_shed, mut bytes_shed) = (0, 0);
        let mut request = SweepRequest {
            archive_tasks: config.archive_tasks,
            archive_age: config.archive_age,
            keep_for_hooks: config.keep_for_hooks,
            pass_over: 0,
            shed,
        };
        loop {
            let swept = sweep(redis, queue, request).await?;
            completed += swept.completed;
            archived += swept.archived;
            hooks_dropped += swept.hooks_dropped.len();
            report::hooks_dropped(&self.shared, queue, &swept.hooks_dropped);
            request.pass_over += swept.spared;
            tasks_shed += swept.shed;
            bytes_shed += swept.freed.completed + swept.freed.archived;
            let KeptBytes {
                completed,
                archived,
            } = &mut request.shed;
            *completed = completed.saturating_sub(swept.freed.completed);
            *archived = archived.saturating_sub(swept.freed.archived);
            if !swept.more {
                break;
            }
        }
        self.shared.counters.swept.add(completed + archived);
        if tasks_shed > 0 {
            self.shared.counters.shed.add(tasks_shed);
            log_limited!(
                self.shared,
                &*queue.name,
                warn,
                "Redis is nearly full: archived and completed tasks were removed before their time",
                tasks = tasks_shed,
                bytes = bytes_shed,
            );
            self.shared
                .observe(|| Event::tasks_shed(&*queue.name, tasks_shed, bytes_shed));
        }
        if archived > 0 || hooks_dropped > 0 {
            tracing::info!(
                queue = &*queue.name,
                completed,
                archived,
                hooks_dropped,
                "swept what is past its time"
            );
        }
        Ok(())
    }

    /// One step of a slow scan over all records of this server's queues.
    async fn find_strays(
        &self,
        redis: &Lent<'_>,
        scan: &mut RecordScan,
    ) -> Result<(), BrokerError> {
        let queues = self.shared.queues.now();
        let lease = self.shared.config.lease;
        let ids = scan.step(redis, &self.shared.keys).await?;
        let mut by_queue: HashMap<&Queue, Vec<String>> = HashMap::new();
        for (queue, id) in ids {
            if let Some(served) = queues.iter().find(|served| *served.queue.name == *queue) {
                by_queue.entry(&served.queue).or_default().push(id);
            }
        }
        for (queue, ids) in by_queue {
            for ids in ids.chunks(crate::defaults::SCRIPT_TASKS) {
                let strays = adopt(redis, queue, lease, ids).await?;
                if strays > 0 {
                    tracing::error!(
                        queue = &*queue.name,
                        strays,
                        "found tasks that stood in no state; they are treated as lost leases"
                    );
                }
            }
        }
        Ok(())
    }
}
