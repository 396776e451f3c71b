use std::time::{Duration, Instant};

use parking_lot::Mutex;

/// Redis' time, as far as replies tell it: how old a reply is, and until when a claim may be run.
pub(super) struct RedisClock {
    started: Instant,
    /// How far Redis' clock, in ms since the epoch, is ahead of the ms since `started`.
    ahead: Mutex<Option<f64>>,
}

impl Default for RedisClock {
    fn default() -> Self {
        Self {
            started: Instant::now(),
            ahead: Mutex::default(),
        }
    }
}

impl RedisClock {
    /// Notes the time in a reply to what was sent at `sent`. Returns how long ago Redis made that reply.
    pub(super) fn heard(&self, sent: Instant, ms: u64) -> Duration {
        self.noted(sent, Instant::now(), ms)
    }

    fn noted(&self, sent: Instant, heard: Instant, ms: u64) -> Duration {
        // Redis looked at its clock at some time between the two: that is all that this reply tells. What
        // earlier ones told goes on to hold within it, unless the clock was set.
        let least = ms as f64 - self.local(heard);
        let most = ms as f64 - self.local(sent);
        let mut ahead = self.ahead.lock();
        let now = ahead.map_or(least, |ahead| ahead.clamp(least, most));
        *ahead = Some(now);
        Duration::from_secs_f64((now - least) / 1e3)
    }

    /// What Redis' time will be in so long, in ms; `None` before the first reply.
    pub(super) fn in_future(&self, span: Duration) -> Option<u64> {
        let ahead = (*self.ahead.lock())?;
        Some((ahead + self.local(Instant::now()) + span.as_secs_f64() * 1e3) as u64)
    }

    fn local(&self, at: Instant) -> f64 {
        at.saturating_duration_since(self.started).as_secs_f64() * 1e3
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Notes replies, each sent and heard after so many seconds and made at this time of Redis', in s.
    /// Returns how old each was when it was heard, in s.
    fn ages(replies: &[(u64, u64, u64)]) -> Vec<u64> {
        let clock = RedisClock::default();
        let at = |s| clock.started + Duration::from_secs(s);
        let replies = replies.iter();
        let ages = replies.map(|&(sent, heard, ms)| clock.noted(at(sent), at(heard), ms * 1000));
        ages.map(|age| age.as_secs()).collect()
    }

    #[test]
    fn replies_that_waited_for_their_reader_are_old_and_all_of_them() {
        assert_eq!(ages(&[(0, 0, 1_000)]), [0]);
        let frozen = [
            (0, 0, 1_000),
            (1, 61, 1_001),
            (1, 61, 1_001),
            (62, 62, 1_062),
        ];
        assert_eq!(ages(&frozen), [0, 60, 60, 0]);
    }

    #[test]
    fn a_reply_that_redis_made_late_is_not_old() {
        assert_eq!(ages(&[(0, 0, 1_000), (1, 61, 1_061)]), [0, 0]);
    }

    #[test]
    fn a_clock_that_was_set_makes_no_reply_old() {
        for jump in [10, 1_000_000] {
            assert_eq!(
                ages(&[(0, 0, 1_000), (1, 1, jump), (2, 2, jump + 1)]),
                [0, 0, 0]
            );
        }
    }
}
