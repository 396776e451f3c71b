use std::sync::Arc;
use std::time::Duration;

use crate::broker::{
    Archival, ArchiveReason, BrokerError, By, LostLease, Queue, Retrial, Settled, TickRequest,
    archive, retry, tick,
};
use crate::defaults::RECONNECT_CAP;
use crate::server::backoff::Backoff;
use crate::server::queue_errors::QueueErrors;
use crate::server::settle::decide::{self, Tried};
use crate::server::setup::config::LostLeases;
use crate::server::setup::connections::Connections;
use crate::server::shared::Shared;

/// What a lost lease leaves as the task's error.
const LEASE_EXPIRED: &str = "lease expired: its server died or lost its connection";

/// Takes back the tasks of servers that died: every server runs one, and they may race.
pub(crate) struct Recoverer {
    pub(crate) shared: Arc<Shared>,
    pub(crate) connections: Arc<Connections>,
}

/// What to do with one batch of lost leases.
#[derive(Default)]
struct Plan {
    retry: Vec<Retrial>,
    archive: Vec<Archival>,
}

impl Recoverer {
    pub(crate) async fn run(self) {
        let mut backoff = Backoff::new("recoverer");
        loop {
            match self.scan().await {
                Ok(()) => {
                    backoff.worked(&self.shared);
                    // The jitter keeps many servers from scanning in step.
                    let pause = self
                        .shared
                        .config
                        .scan
                        .mul_f64(rand::random_range(0.9..1.0));
                    tokio::time::sleep(pause).await;
                }
                Err(error) => backoff.wait(&self.shared, &error).await,
            }
        }
    }

    async fn scan(&self) -> Result<(), BrokerError> {
        let mut errors = QueueErrors::default();
        for served in self.shared.queues.now().iter() {
            errors.note(self.recover_all(&served.queue).await)?;
        }
        errors.end()
    }

    /// In bounded steps, until one finds nothing to do.
    async fn recover_all(&self, queue: &Queue) -> Result<(), BrokerError> {
        while self.recover(queue).await? {}
        Ok(())
    }

    /// One step; answers whether there may be more to do.
    async fn recover(&self, queue: &Queue) -> Result<bool, BrokerError> {
        let config = &self.shared.config;
        let request = TickRequest {
            // An outage shorter than a heartbeat loses no lease, but each tick that is only late would
            // put recovery off.
            scan: config.scan.max(config.heartbeat / 3),
            grace: config.heartbeat + RECONNECT_CAP + Duration::from_secs(2),
            skew: config.clock_skew,
        };
        let found = tick(&self.connections.recover, queue, request).await?;
        self.shared.malformed(&queue.name, &found.malformed);
        if !found.grace_left.is_zero() {
            tracing::debug!(queue = &*queue.name, grace = ?found.grace_left, "after an outage no lease is taken yet");
        }
        if found.hook_owed {
            self.shared.hooks_owed.notify();
        }
        let plan = self.plan(queue, &found.lost);
        let by = By::Recoverer {
            skew: config.clock_skew,
        };
        let retried = retry(&self.connections.recover, queue, by, &plan.retry).await?;
        for (retrial, answer) in plan.retry.iter().zip(&retried) {
            if *answer == Settled::Done && !retrial.delay.is_zero() {
                self.shared.due.hint(queue, retrial.delay);
            }
        }
        let archived = archive(&self.connections.recover, queue, by, &plan.archive).await?;
        for (archival, answer) in plan.archive.iter().zip(&archived) {
            if *answer == Settled::Done {
                let lease = found
                    .lost
                    .iter()
                    .find(|lease| lease.task.id == archival.task.id);
                if let Some(lease) = lease {
                    decide::report_archived(
                        &self.shared,
                        &tried(queue, lease),
                        archival.reason,
                        &archival.error,
                    );
                }
            }
        }
        let answers = retried.iter().chain(&archived);
        let recovered = answers.filter(|&&answer| answer == Settled::Done).count();
        if recovered > 0 {
            tracing::warn!(
                queue = &*queue.name,
                recovered,
                server.id = &*self.shared.id,
                "took back lost leases"
            );
        }
        self.shared.counters.recovered.add(recovered);
        // Not by how many were lost, because broken records, which are gone now, took their places.
        // Another recoverer may have been faster: then this one has nothing more to look for either.
        Ok(recovered > 0 || !found.malformed.is_empty())
    }

    /// A lost lease is a failed try, unless the server says otherwise. The first in a row is repeated at once, because the server and
    /// not the task is the likely cause; then after the retry delay; too many in a row are given up.
    fn plan(&self, queue: &Queue, lost: &[LostLease]) -> Plan {
        let mut plan = Plan::default();
        let spends_retry = self.shared.config.lost_leases == LostLeases::CountAsFailure;
        for lease in lost {
            let in_a_row = lease.lost_before.saturating_add(1);
            let reason = if in_a_row >= self.shared.config.max_lost {
                Some(ArchiveReason::LeaseExpired)
            } else if spends_retry && lease.retried >= lease.max_retry {
                Some(ArchiveReason::RetriesExhausted)
            } else {
                None
            };
            let error = LEASE_EXPIRED.to_owned();
            match reason {
                Some(reason) => plan.archive.push(Archival {
                    task: lease.task.clone(),
                    reason,
                    lost: Some(in_a_row),
                    error,
                }),
                None => plan.retry.push(Retrial {
                    task: lease.task.clone(),
                    delay: match lease.lost_before {
                        0 => Duration::ZERO,
                        _ => decide::retry_delay(&self.shared, &tried(queue, lease), &error),
                    },
                    spends_retry,
                    lost: Some(in_a_row),
                    error,
                }),
            }
        }
        plan
    }
}

fn tried<'a>(queue: &'a Queue, lease: &'a LostLease) -> Tried<'a> {
    Tried {
        leased: &lease.task,
        kind: &lease.kind,
        queue: &queue.name,
        retried: lease.retried,
        max_retry: lease.max_retry,
        policy: lease.policy.as_ref(),
        keeps_result: false,
        has_end_effects: false,
    }
}
