use std::sync::{Arc, OnceLock};

use tokio_util::sync::CancellationToken;

use crate::router::outcomes::CancelReason;

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
