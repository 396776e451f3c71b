use std::time::{Duration, Instant};

use parking_lot::Mutex;

/// Remembers since when Redis has answered this server without a silence that could have cost a live
/// server its leases.
///
/// A recoverer that was merely late (a slow pass over many queues, a handler that blocks its runtime)
/// knows from it that there was no outage.
pub(crate) struct Witness {
    /// The longest silence that does no harm.
    harmless: Duration,
    unbroken: Mutex<Option<Unbroken>>,
}

/// A time in which Redis answered again and again.
#[derive(Clone, Copy)]
struct Unbroken {
    since: Instant,
    until: Instant,
}

impl Witness {
    pub(crate) fn new(harmless: Duration) -> Self {
        Self {
            harmless,
            unbroken: Mutex::new(None),
        }
    }

    /// Redis has just answered a command sent at `sent`. Returns the time of the answer.
    pub(crate) fn answered(&self, sent: Instant) -> Instant {
        let now = Instant::now();
        let mut unbroken = self.unbroken.lock();
        *unbroken = Some(self.extended(*unbroken, sent, now));
        now
    }

    /// Redis ran the command at some time between `sent` and `answered`: so the silence before it was
    /// at most as long as until `answered`, and the next one may have begun at `sent`.
    fn extended(&self, before: Option<Unbroken>, sent: Instant, answered: Instant) -> Unbroken {
        match before {
            Some(before) if answered.saturating_duration_since(before.until) <= self.harmless => {
                Unbroken {
                    since: before.since,
                    until: before.until.max(sent),
                }
            }
            _ => Unbroken {
                since: answered,
                until: answered,
            },
        }
    }

    /// For how long after `start` Redis is known to have been there, without a break.
    pub(crate) fn vouches_since(&self, start: Instant) -> Duration {
        let unbroken = *self.unbroken.lock();
        unbroken
            .filter(|unbroken| unbroken.since <= start)
            .map_or(Duration::ZERO, |unbroken| {
                unbroken.until.saturating_duration_since(start)
            })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HARMLESS: Duration = Duration::from_secs(10);

    /// Answers to commands, each sent and answered at these seconds; how long it then vouches from
    /// `start` on.
    fn vouches(answers: &[(u64, u64)], start: u64) -> u64 {
        let zero = Instant::now();
        let at = |seconds| zero + Duration::from_secs(seconds);
        let witness = Witness::new(HARMLESS);
        let unbroken = answers.iter().fold(None, |unbroken, &(sent, answered)| {
            Some(witness.extended(unbroken, at(sent), at(answered)))
        });
        *witness.unbroken.lock() = unbroken;
        witness.vouches_since(at(start)).as_secs()
    }

    #[test]
    fn answers_without_a_long_silence_vouch_until_the_last_one_was_sent() {
        assert_eq!(vouches(&[], 0), 0, "nothing was answered");
        assert_eq!(vouches(&[(0, 1)], 1), 0);
        assert_eq!(vouches(&[(0, 1), (9, 11)], 1), 8);
        assert_eq!(vouches(&[(0, 1), (9, 11), (17, 18)], 3), 14);
        assert_eq!(vouches(&[(0, 1), (9, 11)], 0), 0, "that early nobody knew");
    }

    #[test]
    fn a_long_silence_ends_what_is_vouched_for() {
        assert_eq!(vouches(&[(0, 1), (12, 13)], 1), 0);
        assert_eq!(vouches(&[(0, 1), (12, 13), (20, 20)], 13), 7);
        // Sent in time, but it may have been run only after the silence.
        assert_eq!(vouches(&[(0, 1), (2, 13)], 1), 0);
        // The silence may have begun as soon as the last command was sent.
        assert_eq!(vouches(&[(0, 1), (2, 8), (13, 13)], 1), 0);
    }
}
