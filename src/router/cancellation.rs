use std::fmt;
use std::sync::{Arc, OnceLock};

use tokio_util::sync::CancellationToken;

/// Why a running task was cancelled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum CancelReason {
    /// The attempt ran for as long as it may.
    Timeout,
    /// The task's deadline has come.
    Deadline,
    /// The lease is another server's, or nobody's: whatever this attempt does now may be done twice.
    LeaseLost,
    /// The server stops, and its grace is over.
    Shutdown,
    /// Somebody asked for it by the task's id.
    Requested,
}

impl fmt::Display for CancelReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Timeout => "the attempt ran out of time",
            Self::Deadline => "the task's deadline has come",
            Self::LeaseLost => "the lease was lost",
            Self::Shutdown => "the server stops",
            Self::Requested => "it was asked for",
        })
    }
}

/// Says once, and for good, that a running task is to end, and why.
#[derive(Debug, Clone, Default)]
pub(crate) struct Cancellation(Arc<Inner>);

#[derive(Debug, Default)]
struct Inner {
    token: CancellationToken,
    /// Set before the token fires, so that whoever sees it fired also sees why.
    reason: OnceLock<CancelReason>,
}

impl Cancellation {
    pub(crate) fn new() -> Self {
        Self::default()
    }

    /// The token. Only [`cancel`](Self::cancel) may fire it.
    pub(crate) fn token(&self) -> &CancellationToken {
        &self.0.token
    }

    /// Cancels. The first reason stays.
    pub(crate) fn cancel(&self, reason: CancelReason) {
        if self.0.reason.set(reason).is_ok() {
            self.0.token.cancel();
        }
    }

    pub(crate) fn is_cancelled(&self) -> bool {
        self.0.token.is_cancelled()
    }

    pub(crate) fn reason(&self) -> Option<CancelReason> {
        self.0.reason.get().copied()
    }

    pub(crate) async fn cancelled(&self) {
        self.0.token.cancelled().await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_first_reason_stays() {
        let cancellation = Cancellation::new();
        assert!(!cancellation.is_cancelled() && cancellation.reason().is_none());
        cancellation.cancel(CancelReason::LeaseLost);
        cancellation.clone().cancel(CancelReason::Shutdown);
        cancellation.cancelled().await;
        assert!(cancellation.is_cancelled());
        assert_eq!(cancellation.reason(), Some(CancelReason::LeaseLost));
    }
}
