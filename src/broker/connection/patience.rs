use tokio::time::{Instant, sleep_until, timeout_at};

use crate::broker::connection::error::{BrokerError, Fault};
use crate::broker::connection::link::Link;
use crate::broker::connection::pace::pauses;
use crate::broker::connection::problem::ConnectProblem;
use crate::broker::connection::query::Query;
use crate::defaults::RECONNECT_CAP;

impl Link {
    /// Waits until Redis serves, for as long as its description says; connects, where it says nothing.
    pub(crate) async fn reach(&self) -> Result<(), BrokerError> {
        let endpoint = self.endpoint();
        if endpoint.patience.is_zero() {
            return self.ready().await;
        }
        let until = Instant::now() + endpoint.patience;
        let mut pauses = pauses();
        let mut failed = None;
        loop {
            let asked = timeout_at(until, self.query(&redis::cmd("PING"))).await;
            let error = match asked {
                Ok(Err(error)) if may_pass(&error) => error,
                // A user that may not ping may still do all that matters.
                Ok(Ok(_) | Err(BrokerError::Denied(_))) => return Ok(()),
                Ok(Err(error)) => return Err(error),
                Err(elapsed) => return Err(failed.unwrap_or_else(|| endpoint.too_late(elapsed))),
            };
            if failed.is_none() {
                tracing::warn!("waiting for Redis, up to {:?}: {error}", endpoint.patience);
            }
            failed = Some(error);
            let pause = pauses.next().unwrap_or(RECONNECT_CAP);
            sleep_until(until.min(Instant::now() + pause)).await;
        }
    }
}

/// Whether it may pass by itself, as what is configured wrongly does not.
fn may_pass(error: &BrokerError) -> bool {
    match error {
        BrokerError::Connect { problem, .. } => {
            !matches!(problem, ConnectProblem::Login | ConnectProblem::Tls)
        }
        error => error.fault() != Fault::Permanent,
    }
}
