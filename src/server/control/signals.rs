use std::convert::Infallible;
use std::io;

use crate::server::shared::Shared;

#[cfg(unix)]
pub(crate) use unix::Signals;

#[cfg(unix)]
mod unix {
    use std::future::pending;
    use std::sync::LazyLock;

    use tokio::signal::unix::{Signal, SignalKind, signal};

    use super::*;
    use crate::server::control::disposition::Disposition;
    use crate::server::phase::Phase;

    /// Whether a hang-up would end this process. Asked once, before the first server listens: one
    /// started by `nohup` ignores it, and a program that reloads its settings takes it for itself.
    static HANG_UP_ENDS: LazyLock<bool> =
        LazyLock::new(|| Disposition::of(libc::SIGHUP) == Some(Disposition::Default));

    /// What the process' signals ask for.
    pub(crate) struct Signals {
        interrupt: Signal,
        terminate: Signal,
        hang_up: Option<Signal>,
        /// TSTP, as asynq and Sidekiq have it: claim nothing more.
        quiet: Signal,
        /// CONT, which undoes TSTP everywhere else.
        resume: Signal,
    }

    impl Signals {
        pub(crate) fn listen() -> io::Result<Self> {
            let hang_up = HANG_UP_ENDS.then(|| signal(SignalKind::hangup()));
            Ok(Self {
                interrupt: signal(SignalKind::interrupt())?,
                terminate: signal(SignalKind::terminate())?,
                hang_up: hang_up.transpose()?,
                quiet: signal(SignalKind::from_raw(libc::SIGTSTP))?,
                resume: signal(SignalKind::from_raw(libc::SIGCONT))?,
            })
        }

        /// Listens before the server runs, where a signal would be lost until then: to process 1,
        /// and where something else in the process takes them. Elsewhere they end the process, and
        /// one that calls `run_until` may count on that.
        pub(crate) fn listen_early() -> io::Result<Option<Self>> {
            let is_lost = std::process::id() == 1
                || Disposition::of(libc::SIGTERM) == Some(Disposition::Caught);
            is_lost.then(Self::listen).transpose()
        }

        /// Passes signals on to the server, for ever: the first TERM, INT or HUP stops it, one more
        /// hurries it.
        pub(crate) async fn obey(mut self, shared: &Shared) -> Infallible {
            let mut is_quieted = false;
            loop {
                tokio::select! {
                    biased;
                    _ = self.interrupt.recv() => shared.phases.stop(),
                    _ = self.terminate.recv() => shared.phases.stop(),
                    () = heard(&mut self.hang_up) => shared.phases.stop(),
                    _ = self.quiet.recv() => {
                        is_quieted = true;
                        shared.phases.advance(Phase::Quiet);
                    }
                    // One that was frozen gets it, too, and may be quiet for another reason.
                    _ = self.resume.recv() => if std::mem::take(&mut is_quieted) {
                        shared.resume();
                    }
                }
            }
        }
    }

    async fn heard(signal: &mut Option<Signal>) {
        match signal {
            Some(signal) => _ = signal.recv().await,
            None => pending().await,
        }
    }
}

#[cfg(not(unix))]
pub(crate) struct Signals {}

#[cfg(not(unix))]
impl Signals {
    pub(crate) fn listen() -> io::Result<Self> {
        Ok(Self {})
    }

    pub(crate) fn listen_early() -> io::Result<Option<Self>> {
        Ok(None)
    }

    pub(crate) async fn obey(self, shared: &Shared) -> Infallible {
        while tokio::signal::ctrl_c().await.is_ok() {
            shared.phases.stop();
        }
        std::future::pending().await
    }
}
