use std::time::{Duration, Instant};

use backon::{BackoffBuilder, ExponentialBackoff, ExponentialBuilder};
use parking_lot::Mutex;

use crate::defaults::RECONNECT_CAP;

/// The longest pause between two attempts to connect: whoever calls meanwhile waits for it, or is
/// refused by the connection that is there.
const LONGEST: Duration = Duration::from_millis(500);
/// A failure so long after the one before is a new beginning.
const CALM: Duration = Duration::from_secs(2);

/// How long a part of windlass waits before it asks a failing Redis again: 50 ms, doubling to 2 s.
pub(crate) fn pauses() -> ExponentialBackoff {
    pauses_up_to(RECONNECT_CAP)
}

fn pauses_up_to(longest: Duration) -> ExponentialBackoff {
    ExponentialBuilder::default()
        .with_min_delay(Duration::from_millis(50))
        .with_max_delay(longest)
        .without_max_times()
        .build()
}

/// How often connections to one Redis may be made while they lead to nothing: because they fail, or
/// because what they lead to refuses every call. The first is free.
#[derive(Debug, Default)]
pub(super) struct Pace(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    again_at: Option<Instant>,
    pauses: Option<ExponentialBackoff>,
}

impl Pace {
    /// A connection could not be made, or was of no use.
    pub(super) fn failed(&self) {
        self.may_go_on();
    }

    /// Whether a connection that is of no use may be replaced now. If so, the next one may be only
    /// after a pause.
    pub(super) fn may_go_on(&self) -> bool {
        let mut state = self.0.lock();
        let now = Instant::now();
        let calm = state.again_at.is_none_or(|at| at + CALM < now);
        if calm {
            state.pauses = None;
        } else if state.again_at.is_some_and(|at| now < at) {
            return false;
        }
        let pause = match &mut state.pauses {
            None => {
                state.pauses = Some(pauses_up_to(LONGEST));
                Duration::ZERO
            }
            Some(pauses) => pauses.next().unwrap_or(LONGEST),
        };
        // The jitter keeps many programs from connecting in step.
        let pause = pause.mul_f64(rand::random_range(0.7..1.0));
        state.again_at = Some(now + pause);
        true
    }

    /// How long the next attempt to connect must wait.
    pub(super) fn pause(&self) -> Duration {
        let again_at = self.0.lock().again_at;
        again_at.map_or(Duration::ZERO, |at| {
            at.saturating_duration_since(Instant::now())
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_failures_are_soon_forgiven_and_many_are_spaced_out() {
        let pace = Pace::default();
        pace.failed();
        assert_eq!(pace.pause(), Duration::ZERO, "the first is free");
        pace.failed();
        let first = pace.pause();
        assert!(
            first > Duration::ZERO && first < Duration::from_millis(50),
            "{first:?}"
        );
        assert!(!pace.may_go_on(), "not before the pause is over");
        pace.failed();
        assert!(pace.pause() <= first, "those that fail together count once");
    }
}
