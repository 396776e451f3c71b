use std::fmt;

use tokio::sync::watch;

/// How far a server has come on its way to its end. It never goes back, but from quiet to running.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
#[non_exhaustive]
pub enum Phase {
    /// Does not run yet, or Redis has not given it a first answer.
    Starting,
    /// Claims and runs tasks.
    #[default]
    Running,
    /// Claims nothing more, and goes on with what it has.
    Quiet,
    /// Ends: waits for handlers, then cancels them.
    Stopping,
    /// Ends without waiting.
    Hurrying,
    /// Has ended.
    Stopped,
}

impl fmt::Display for Phase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Starting => "starting",
            Self::Running => "running",
            Self::Quiet => "quiet",
            Self::Stopping => "stopping",
            Self::Hurrying => "hurrying",
            Self::Stopped => "stopped",
        })
    }
}

/// The one place that holds the phase; cheap to watch. A server that starts is to run: it is
/// [`Running`](Phase::Running) here, and [`Vitals`](crate::server::observe::health::Vitals) know more.
#[derive(Debug, Default)]
pub(crate) struct Phases(watch::Sender<Phase>);

impl Phases {
    pub(crate) fn now(&self) -> Phase {
        *self.0.borrow()
    }

    /// Goes on to `phase`, unless it is already there or further.
    pub(crate) fn advance(&self, phase: Phase) {
        self.change(|now| phase.max(now));
    }

    /// Running, if it is quiet.
    pub(crate) fn resume(&self) {
        self.change(|now| match now {
            Phase::Quiet => Phase::Running,
            further => further,
        });
    }

    /// Stopping, or hurrying when it stops already.
    pub(crate) fn stop(&self) {
        self.change(|now| match now {
            Phase::Starting | Phase::Running | Phase::Quiet => Phase::Stopping,
            Phase::Stopping | Phase::Hurrying => Phase::Hurrying,
            Phase::Stopped => Phase::Stopped,
        });
    }

    pub(crate) async fn reached(&self, phase: Phase) {
        self.wait_for(|now| now >= phase).await;
    }

    /// Waits while it is quiet; returns what it is then.
    pub(crate) async fn not_quiet(&self) -> Phase {
        self.wait_for(|now| now != Phase::Quiet).await
    }

    fn change(&self, next: impl FnOnce(Phase) -> Phase) {
        self.0.send_if_modified(|now| {
            let before = std::mem::replace(now, next(*now));
            before != *now
        });
    }

    async fn wait_for(&self, is_met: impl Fn(Phase) -> bool) -> Phase {
        let mut phases = self.0.subscribe();
        match phases.wait_for(|now| is_met(*now)).await {
            Ok(now) => *now,
            Err(_) => unreachable!("the sender lives as long as `self`"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: [Phase; 6] = [
        Phase::Starting,
        Phase::Running,
        Phase::Quiet,
        Phase::Stopping,
        Phase::Hurrying,
        Phase::Stopped,
    ];

    fn after(phase: Phase, step: impl FnOnce(&Phases)) -> Phase {
        let phases = Phases(watch::Sender::new(phase));
        step(&phases);
        phases.now()
    }

    #[test]
    fn a_phase_goes_back_only_from_quiet_to_running() {
        for phase in ALL {
            for next in ALL {
                assert_eq!(after(phase, |it| it.advance(next)), phase.max(next));
            }
            assert!(after(phase, Phases::stop) >= phase.max(Phase::Stopping));
            let resumed = match phase {
                Phase::Quiet => Phase::Running,
                other => other,
            };
            assert_eq!(after(phase, Phases::resume), resumed);
        }
    }
}
