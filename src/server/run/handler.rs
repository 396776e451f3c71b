use std::sync::{Arc, Weak};
use std::time::Duration;

use futures::FutureExt;
use futures::future::BoxFuture;
use tokio::sync::OwnedSemaphorePermit;
use tracing::Instrument;

use crate::broker::{How, progress};
use crate::router::{
    CancelReason, Cancellation, Delivery, FailureCause, Outcome, ProgressError, Slot, TaskContext,
};
use crate::server::observe::event::Event;
use crate::server::observe::log_limit::log_limited;
use crate::server::settle::advice;
use crate::server::settle::decide::{self, Ended};
use crate::server::shared::Shared;
use crate::server::shared::attempt::{Attempt, Limit};
use crate::server::shared::connections::Connections;

/// One of the server's slots, which a handler holds; a blocking handler that was given up still does.
pub(crate) struct HandlerSlot {
    pub(crate) _permit: Option<OwnedSemaphorePermit>,
    pub(crate) connections: Arc<Connections>,
    pub(crate) attempt: Arc<Attempt>,
}

impl Slot for HandlerSlot {
    fn progress(&self, note: String) -> BoxFuture<'_, Result<(), ProgressError>> {
        let Attempt { queue, leased, .. } = &*self.attempt;
        async move {
            match progress(&self.connections.settle, queue, leased, &note).await {
                Ok(true) => Ok(()),
                Ok(false) => Err(ProgressError::Ended),
                Err(error) => Err(ProgressError::Broker(Box::new(error))),
            }
        }
        .boxed()
    }
}

/// Runs the handler of an attempt, and says what is to become of its task. `None`: there is nothing to
/// settle. Whoever else holds the slot afterwards is a blocking handler that was given up.
pub(crate) async fn run(
    shared: &Arc<Shared>,
    slot: &Arc<HandlerSlot>,
    payload: Vec<u8>,
    headers: Vec<(String, String)>,
) -> Option<How> {
    let attempt = &slot.attempt;
    if !shared.routes.knows(&attempt.record.kind) {
        return Some(advice::unknown_kind(shared, attempt));
    }
    let handler_slot: Weak<dyn Slot> = Arc::<HandlerSlot>::downgrade(slot);
    let context = TaskContext::new(Delivery {
        id: attempt.leased.id.to_string(),
        kind: attempt.record.kind.clone(),
        queue: attempt.queue.name.clone(),
        retried: attempt.record.retried,
        max_retry: attempt.record.max_retry,
        lease: attempt.lease,
        server_id: shared.id.clone(),
        deadline: attempt.limit.map(|limit| limit.at),
        cancellation: attempt.cancellation.clone(),
        headers,
        keeps_result: attempt.record.keeps_result,
        slot: Some(handler_slot.clone()),
    });
    let span = attempt.name().span(&shared.id);
    span.record("lease", attempt.lease);
    let handler = shared.routes.dispatch(context, payload);
    let handler = handler.instrument(span.clone());
    let grace = shared.config.cancel_grace;
    let mut ended = supervise(handler, &attempt.cancellation, attempt.limit, grace).await;
    if let Ended::GivenUp { still_runs, .. } = &mut ended {
        *still_runs = handler_slot.strong_count() > 1;
        if *still_runs {
            leaked(shared, attempt, handler_slot);
        }
    }
    if let Ended::Returned(Outcome::Failed(failure), _) = &ended
        && failure.cause() == FailureCause::NotStarted
    {
        log_limited!(
            shared,
            &*attempt.queue.name,
            error,
            "a blocking handler could not be started; its task is handed back",
            task.id = &*attempt.leased.id,
            task.kind = attempt.record.kind,
            error = failure.text(),
        );
    }
    if let Ended::Returned(Outcome::Completed(_), Some(reason)) = ended
        && decide::is_limit(reason)
    {
        over_limit(shared, attempt, reason);
    }
    let limit = attempt.limit.map(|limit| limit.after);
    let outcome = match decide::outcome(ended, limit)? {
        Ok(outcome) => outcome,
        Err(how) => return Some(how),
    };
    let advice = span.in_scope(|| advice::on_outcome(shared, attempt, &outcome));
    Some(decide::after_attempt(&attempt.record, outcome, advice))
}

/// Runs a handler until it returns, or until the grace after its time limit or cancellation is over.
async fn supervise(
    handler: impl Future<Output = Outcome>,
    cancellation: &Cancellation,
    limit: Option<Limit>,
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
        // A handler that heeds its cancellation may return before the token is looked at here.
        outcome = &mut handler => return Ended::Returned(outcome, cancellation.reason()),
        () = cancellation.cancelled() => {}
        reason = out_of_time => cancellation.cancel(reason),
    }
    let reason = cancellation.reason();
    match tokio::time::timeout(grace, handler).await {
        Ok(outcome) => Ended::Returned(outcome, reason),
        Err(_) => Ended::GivenUp {
            reason,
            still_runs: false,
        },
    }
}

/// Says that a handler did its work, but took longer than it may.
fn over_limit(shared: &Shared, attempt: &Attempt, reason: CancelReason) {
    shared.counters.over_limit.add(1);
    log_limited!(
        shared,
        &*attempt.queue.name,
        warn,
        "a handler ended well, but over its limit",
        task.id = &*attempt.leased.id,
        task.kind = attempt.record.kind,
        %reason,
    );
    shared.observe(|| Event::over_limit(attempt.name()));
}

/// Says that a blocking handler was given up, and keeps it in sight until it returns.
fn leaked(shared: &Shared, attempt: &Arc<Attempt>, slot: Weak<dyn Slot>) {
    log_limited!(
        shared,
        &*attempt.queue.name,
        error,
        "a handler ignores its cancellation; it keeps its slot until it returns",
        task.id = &*attempt.leased.id,
        task.kind = attempt.record.kind,
    );
    shared.observe(|| Event::handler_leaked(attempt.name()));
    shared.leaks.add(attempt.clone(), slot);
}
