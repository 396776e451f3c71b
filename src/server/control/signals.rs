use std::io;

use crate::server::shared::Shared;

/// What the process' signals ask for.
pub(crate) struct Signals {
    #[cfg(unix)]
    interrupt: tokio::signal::unix::Signal,
    #[cfg(unix)]
    terminate: tokio::signal::unix::Signal,
    #[cfg(unix)]
    stop_reading: tokio::signal::unix::Signal,
}

impl Signals {
    #[cfg(unix)]
    pub(crate) fn install() -> io::Result<Self> {
        use tokio::signal::unix::{SignalKind, signal};
        Ok(Self {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
            // TSTP, as asynq and Sidekiq have it: claim nothing more.
            stop_reading: signal(SignalKind::from_raw(libc::SIGTSTP))?,
        })
    }

    #[cfg(not(unix))]
    pub(crate) fn install() -> io::Result<Self> {
        Ok(Self {})
    }

    /// Passes signals on to the server, for ever: the first TERM or INT stops it, one more hurries it.
    #[cfg(unix)]
    pub(crate) async fn obey(mut self, shared: &Shared) {
        loop {
            tokio::select! {
                _ = self.interrupt.recv() => shared.phases.stop(),
                _ = self.terminate.recv() => shared.phases.stop(),
                _ = self.stop_reading.recv() => shared.phases.advance(crate::server::control::phase::Phase::Quiet),
            }
        }
    }

    #[cfg(not(unix))]
    pub(crate) async fn obey(self, shared: &Shared) {
        while tokio::signal::ctrl_c().await.is_ok() {
            shared.phases.stop();
        }
        std::future::pending().await
    }
}
