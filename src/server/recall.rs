use super::connections::Connections;
use super::shared::Shared;
use crate::broker::{BrokerError, LeaseScan, Queue, Releasal, Settled, release};
use crate::defaults::SCRIPT_RECORDS;

/// Hands back what a queue has leased to this server and this server does not run: the tasks of claims
/// whose answers were lost. No claim from the queue may be on its way.
pub(super) async fn recall(
    shared: &Shared,
    connections: &Connections,
    queue: &Queue,
) -> Result<(), BrokerError> {
    let mut scan = LeaseScan::default();
    let mut recalled = 0;
    while let Some(leases) = scan.step(&connections.claim, queue, &shared.id).await? {
        // After the look at Redis: what was settled in between has no lease, and is answered so.
        let unknown = shared.running.unknown(queue, leases);
        for tasks in unknown.chunks(SCRIPT_RECORDS) {
            let tasks: Vec<_> = tasks
                .iter()
                .map(|task| Releasal {
                    task: task.clone(),
                    started: false,
                })
                .collect();
            let answers = release(&connections.claim, queue, &tasks).await?;
            recalled += answers.iter().filter(|&&a| a == Settled::Done).count();
        }
    }
    if recalled > 0 {
        tracing::info!(
            server.id = &*shared.id,
            queue = &*queue.name,
            tasks = recalled,
            "the answer of a claim was lost; its tasks are handed back"
        );
    }
    Ok(())
}
