use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use tracing::Instrument;

use crate::broker::{Archival, ArchiveReason, LeasedId, Malformed, Queue, Record, Releasal};
use crate::router::{CancelReason, Cancellation, Delivery, Failure, Outcome, Slot, TaskContext};
use crate::server::Event;
use crate::server::run::handler_slot::HandlerSlot;
use crate::server::run::leaks::Leak;
use crate::server::settle::decide::{self, Tried};
use crate::server::settle::settlement::End;
use crate::server::shared::Shared;

/// One try of a task, from its claim to how it ends.
pub(crate) struct Attempt {
    pub(crate) queue: Queue,
    pub(crate) leased: LeasedId,
    /// The number of its lease.
    pub(crate) lease: u64,
    pub(crate) kind: Arc<str>,
    pub(crate) record: Result<Record, Malformed>,
    pub(crate) limit: Option<Limit>,
    pub(crate) cancellation: Cancellation,
    pub(crate) started: Instant,
}

/// When a try must end: at its timeout or at the task's deadline.
pub(crate) struct Limit {
    pub(crate) at: Instant,
    after: Duration,
    reason: CancelReason,
}

impl Limit {
    /// `now` is Redis' time in ms at the claim.
    pub(crate) fn of(record: &Record, started: Instant, now: u64) -> Option<Self> {
        let timeout = record.timeout.map(|after| (after, CancelReason::Timeout));
        let deadline = record
            .deadline
            .map(|at| Duration::from_millis(at.saturating_sub(now)));
        let deadline = deadline.map(|after| (after, CancelReason::Deadline));
        let (after, reason) = timeout
            .into_iter()
            .chain(deadline)
            .min_by_key(|(after, _)| *after)?;
        Some(Self {
            at: started.checked_add(after)?,
            after,
            reason,
        })
    }
}

/// How a handler came to its end.
enum Ended {
    /// It answered, perhaps after it was cancelled.
    Answered(Outcome, Option<CancelReason>),
    /// It did not answer within the grace after its cancellation.
    GivenUp(CancelReason),
}

impl Attempt {
    /// Runs the handler; `None`: there is nothing to settle. Whoever else holds the place afterwards is
    /// a blocking handler that was given up.
    pub(crate) async fn run(self, shared: &Arc<Shared>, place: &Arc<HandlerSlot>) -> Option<End> {
        let Self {
            leased,
            kind,
            queue,
            ..
        } = self;
        let record = match self.record {
            Ok(record) => record,
            Err(malformed) => {
                shared.malformed(&queue.name, &[leased.id.to_string()]);
                return Some(End::Archive(Archival {
                    task: leased,
                    reason: ArchiveReason::Malformed,
                    lost: None,
                    error: malformed.to_string(),
                }));
            }
        };
        let tried = Tried {
            leased: &leased,
            kind: &kind,
            queue: &queue.name,
            retried: record.retried,
            max_retry: record.max_retry,
            policy: record.policy.as_ref(),
            keeps_result: record.keeps_result,
            has_end_effects: record.has_end_effects,
        };
        if !shared.routes.knows(&record.kind) {
            return Some(decide::unknown_kind(shared, &tried));
        }
        let slot: Weak<dyn Slot> = Arc::<HandlerSlot>::downgrade(place);
        let context = TaskContext::new(Delivery {
            id: leased.id.to_string(),
            kind: record.kind,
            queue: queue.name.clone(),
            retried: record.retried,
            max_retry: record.max_retry,
            lease: self.lease,
            server_id: shared.id.clone(),
            deadline: self.limit.as_ref().map(|limit| limit.at),
            cancellation: self.cancellation.clone(),
            headers: record.headers,
            slot: Some(slot.clone()),
        });
        let span = tracing::info_span!(
            "task",
            task.id = &*leased.id,
            task.kind = &*kind,
            queue = &*queue.name,
            attempt = u64::from(record.retried) + 1,
            lease = self.lease,
            server.id = &*shared.id,
        );
        let handler = shared
            .routes
            .dispatch(context, record.payload)
            .instrument(span);
        let limit = self.limit.as_ref();
        let ended = supervise(
            handler,
            &self.cancellation,
            limit,
            shared.config.cancel_grace,
        )
        .await;
        let leaked = matches!(ended, Ended::GivenUp(_)) && slot.strong_count() > 1;
        if leaked {
            let leak = Leak {
                queue: queue.clone(),
                leased: leased.clone(),
                kind: kind.clone(),
                started: self.started,
                slot: slot.clone(),
            };
            watch_leak(shared, leak);
        }
        end(shared, &tried, ended, limit, leaked)
    }
}

/// Runs a handler until it answers, or until the grace after its time limit or cancellation is over.
async fn supervise(
    handler: impl Future<Output = Outcome>,
    cancellation: &Cancellation,
    limit: Option<&Limit>,
    grace: Duration,
) -> Ended {
    tokio::pin!(handler);
    let out_of_time = async {
        match limit {
            Some(limit) => {
                tokio::time::sleep_until(limit.at.into()).await;
                limit.reason
            }
            None => std::future::pending().await,
        }
    };
    tokio::select! {
        // The handler first: most end at their first poll, and then neither timer nor token is set up.
        biased;
        // A handler that heeds its cancellation may answer before the token is looked at here.
        outcome = &mut handler => return Ended::Answered(outcome, cancellation.reason()),
        () = cancellation.cancelled() => {}
        reason = out_of_time => cancellation.cancel(reason),
    }
    let reason = cancellation.reason().unwrap_or(CancelReason::Requested);
    match tokio::time::timeout(grace, handler).await {
        Ok(outcome) => Ended::Answered(outcome, Some(reason)),
        Err(_) => Ended::GivenUp(reason),
    }
}

fn end(
    shared: &Shared,
    tried: &Tried<'_>,
    ended: Ended,
    limit: Option<&Limit>,
    leaked: bool,
) -> Option<End> {
    let released = || {
        End::Release(Releasal {
            task: tried.leased.clone(),
            started: true,
        })
    };
    match ended {
        // A handler that fails because the server stops has not failed: unless it gives a verdict of
        // its own, its task is handed back.
        Ended::Answered(Outcome::Failed(failure), Some(CancelReason::Shutdown))
            if failure.is_plain() =>
        {
            Some(released())
        }
        Ended::Answered(outcome, _) => Some(decide::after_outcome(shared, tried, outcome)),
        Ended::GivenUp(CancelReason::LeaseLost) => None,
        // Its blocking handler still runs: handing the task back would let it run twice at once.
        Ended::GivenUp(CancelReason::Shutdown) if leaked => None,
        Ended::GivenUp(CancelReason::Shutdown) => Some(released()),
        Ended::GivenUp(reason) => {
            let failure = match limit {
                Some(limit) if reason == CancelReason::Timeout => Failure::timeout(limit.after),
                _ => Failure::cancelled(reason),
            };
            Some(decide::after_outcome(
                shared,
                tried,
                Outcome::Failed(failure),
            ))
        }
    }
}

/// Counts a blocking handler that was given up, until it returns.
fn watch_leak(shared: &Arc<Shared>, leak: Leak) {
    shared.counters.leaked.add(1);
    tracing::error!(
        task.id = &*leak.leased.id,
        task.kind = &*leak.kind,
        "a handler ignores its cancellation; it keeps its slot until it returns"
    );
    shared.observe(|| Event::HandlerLeaked {
        id: leak.leased.id.to_string(),
        kind: leak.kind.to_string(),
    });
    let slot = leak.slot.clone();
    shared.leaks.add(leak);
    let shared = Arc::downgrade(shared);
    tokio::spawn(async move {
        while slot.strong_count() > 0 {
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        if let Some(shared) = shared.upgrade() {
            shared.counters.leaked.subtract(1);
        }
    });
}
