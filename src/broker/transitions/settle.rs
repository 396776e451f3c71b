use std::time::Duration;

use super::super::reply::Parts;
use super::super::script::{Call, Script};
use super::super::{BrokerError, Query};

/// What became of one task of a settle call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Settled {
    /// The lease ended, or was extended, as asked.
    Done,
    /// Extended, and somebody asked for the task to be cancelled.
    Cancelled,
    /// There is no such lease: this call is a repeat, or the task was taken away.
    Gone,
    /// Another lease lives, or a recoverer came too early.
    Stale,
}

/// Who ends a lease.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum By {
    Holder,
    /// Only where the lease is past its expiry by this much.
    Recoverer {
        skew: Duration,
    },
}

impl By {
    pub(super) fn arg(self) -> String {
        match self {
            Self::Holder => String::new(),
            Self::Recoverer { skew } => skew.as_millis().to_string(),
        }
    }
}

/// Runs a call that answers one code for each of `count` tasks.
pub(super) async fn settle(
    script: &Script,
    call: &Call<'_>,
    redis: &impl Query,
    count: usize,
) -> Result<Vec<Settled>, BrokerError> {
    if count == 0 {
        return Ok(Vec::new());
    }
    let mut answers = Parts::of(call.run(redis).await?)
        .filter(|answers| answers.len() == count)
        .ok_or_else(|| script.unexpected())?;
    (0..count)
        .map(|_| match answers.integer() {
            Some(1) => Ok(Settled::Done),
            Some(2) => Ok(Settled::Cancelled),
            Some(0) => Ok(Settled::Gone),
            Some(-1) => Ok(Settled::Stale),
            _ => Err(script.unexpected()),
        })
        .collect()
}
