use std::time::{Duration, Instant};

use parking_lot::Mutex;

/// Redis' time, as its replies told it. Never ahead of Redis, unless Redis' clock was set back.
#[derive(Default)]
pub(super) struct RedisClock(Mutex<Option<(u64, Instant)>>);

impl RedisClock {
    /// Notes the time in a reply, in ms since the epoch. Returns by how much it is behind what the
    /// replies before let one expect: how long the reply, or who should have read it, was held up.
    pub(super) fn heard(&self, ms: u64) -> Duration {
        let heard = Instant::now();
        let before = self.0.lock().replace((ms, heard));
        before.map_or(Duration::ZERO, |(then, at)| {
            let expected = Duration::from_millis(then) + heard.duration_since(at);
            expected.saturating_sub(Duration::from_millis(ms))
        })
    }

    /// What Redis' time will be in so long, in ms; `None` before the first reply.
    pub(super) fn in_future(&self, span: Duration) -> Option<u64> {
        let (ms, at) = (*self.0.lock())?;
        let time = Duration::from_millis(ms) + at.elapsed() + span;
        u64::try_from(time.as_millis()).ok()
    }
}
