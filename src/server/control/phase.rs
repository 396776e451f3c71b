use tokio::sync::watch;

/// How far a server has come on its way to its end; it never goes back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub(crate) enum Phase {
    #[default]
    Running,
    /// Claims nothing more, and goes on with what it has.
    Quiet,
    /// Ends: waits for handlers, then cancels them.
    Stopping,
    /// Ends without waiting.
    Hurrying,
}

/// The one place where the phase stands; cheap to watch.
#[derive(Debug, Default)]
pub(crate) struct Phases(watch::Sender<Phase>);

impl Phases {
    pub(crate) fn now(&self) -> Phase {
        *self.0.borrow()
    }

    /// Goes on to `phase`, unless it is already there or further.
    pub(crate) fn advance(&self, phase: Phase) {
        self.0.send_if_modified(|now| {
            let further = phase > *now;
            if further {
                *now = phase;
            }
            further
        });
    }

    /// Stopping, or hurrying when it stops already.
    pub(crate) fn stop(&self) {
        self.0.send_modify(|now| {
            *now = if *now < Phase::Stopping {
                Phase::Stopping
            } else {
                Phase::Hurrying
            };
        });
    }

    pub(crate) async fn reached(&self, phase: Phase) {
        // The sender lives as long as `self`.
        let _ = self.0.subscribe().wait_for(|now| *now >= phase).await;
    }
}
