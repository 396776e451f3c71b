use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use thiserror::Error;

use crate::defaults::{FAR, RETRY_DELAY_CAP, RETRY_JITTER};

/// How long a task waits after its failures, stored with the task. It takes precedence over the server's
/// own function. A handler's `retry_after` takes precedence over it.
///
/// ```
/// # use std::time::Duration;
/// use windlass::task::RetryPolicy;
///
/// let about_every_minute = RetryPolicy::fixed(Duration::from_secs(60));
/// let doubling = RetryPolicy::exponential(Duration::from_secs(1), 2.0)
///     .cap(Duration::from_secs(600));
/// let exact = RetryPolicy::fixed(Duration::from_secs(60)).jitter(0);
/// let steps = RetryPolicy::list([Duration::from_secs(1), Duration::from_secs(30)]);
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct RetryPolicy {
    shape: Shape,
    cap: Duration,
    jitter: f64,
}

#[derive(Debug, Clone, PartialEq)]
enum Shape {
    Fixed(Duration),
    Exponential { first: Duration, factor: f64 },
    List(Vec<Duration>),
}

/// What is wrong with a retry policy.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum PolicyProblem {
    /// The list of delays is empty.
    #[error("its list of delays is empty")]
    EmptyList,
    /// The list of delays is too long to be stored with each task.
    #[error("its list has more than {MAX_LIST} delays")]
    LongList,
    /// The factor is below 1 or no number.
    #[error("its factor is below 1")]
    Factor,
    /// The jitter is not between 0 and 1.
    #[error("its jitter is not between 0 and 1")]
    Jitter,
    /// The cap is too long to be stored.
    #[error("its cap is longer than 100 years")]
    Cap,
    /// What is stored cannot be read.
    #[error("what is stored of it cannot be read")]
    Unreadable,
}

/// The longest list of delays.
const MAX_LIST: usize = 100;

impl RetryPolicy {
    /// The same delay after each failure.
    pub fn fixed(delay: Duration) -> Self {
        Self::new(Shape::Fixed(delay))
    }

    /// `first` after the first failure, and `factor` times as long after each one more.
    pub fn exponential(first: Duration, factor: f64) -> Self {
        Self::new(Shape::Exponential { first, factor })
    }

    /// These delays, one after the other; the last one is repeated.
    pub fn list(delays: impl IntoIterator<Item = Duration>) -> Self {
        Self::new(Shape::List(delays.into_iter().collect()))
    }

    /// The longest delay, before jitter. Default: 7 days.
    pub fn cap(mut self, cap: Duration) -> Self {
        self.cap = cap;
        self
    }

    /// Each delay is varied by up to this part of it, up or down: 0.1 is ± 10 %. So tasks that fail at
    /// the same time are not all tried again at the same time. With 0, delays are exact.
    /// Default: 0.1.
    pub fn jitter(mut self, part: impl Into<f64>) -> Self {
        self.jitter = part.into();
        self
    }

    /// The delay after a failure, when `retried` tries have failed before: at most 100 years, and
    /// without a jitter that is not between 0 and 1.
    pub fn delay(&self, retried: u32) -> Duration {
        let delay = match &self.shape {
            Shape::Fixed(delay) => *delay,
            Shape::Exponential { first, factor } => {
                let seconds = first.as_secs_f64() * factor.powf(f64::from(retried));
                Duration::try_from_secs_f64(seconds).unwrap_or(self.cap)
            }
            Shape::List(delays) => {
                let place = usize::try_from(retried)
                    .unwrap_or(usize::MAX)
                    .min(delays.len().saturating_sub(1));
                delays.get(place).copied().unwrap_or_default()
            }
        };
        // A policy that no enqueue would take can be asked, too.
        let part = if (0.0..=1.0).contains(&self.jitter) {
            self.jitter
        } else {
            0.0
        };
        let jitter = rand::random_range(-1.0..=1.0) * part;
        delay.min(self.cap).min(FAR).mul_f64(1.0 + jitter).min(FAR)
    }

    fn new(shape: Shape) -> Self {
        Self {
            shape,
            cap: RETRY_DELAY_CAP,
            jitter: RETRY_JITTER,
        }
    }

    fn problem(&self) -> Option<PolicyProblem> {
        match &self.shape {
            Shape::List(delays) if delays.is_empty() => Some(PolicyProblem::EmptyList),
            Shape::List(delays) if delays.len() > MAX_LIST => Some(PolicyProblem::LongList),
            Shape::Exponential { factor, .. } if !(1.0..=1e6).contains(factor) => {
                Some(PolicyProblem::Factor)
            }
            _ if !(0.0..=1.0).contains(&self.jitter) => Some(PolicyProblem::Jitter),
            _ if self.cap > FAR => Some(PolicyProblem::Cap),
            _ => None,
        }
    }

    pub(super) fn check(&self) -> Result<(), PolicyProblem> {
        self.problem().map_or(Ok(()), Err)
    }
}

/// As it is stored: `fixed 5000`, `exponential 1000 2` or `list 1000 30000`, all in ms, then
/// ` cap <ms>` and ` jitter <part>`.
impl fmt::Display for RetryPolicy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // A longer delay says no more than the cap.
        let ms = |delay: &Duration| delay.min(&self.cap).as_millis();
        match &self.shape {
            Shape::Fixed(delay) => write!(f, "fixed {}", ms(delay))?,
            Shape::Exponential { first, factor } => {
                write!(f, "exponential {} {factor}", ms(first))?
            }
            Shape::List(delays) => {
                f.write_str("list")?;
                for delay in delays {
                    write!(f, " {}", ms(delay))?;
                }
            }
        }
        write!(f, " cap {} jitter {}", self.cap.as_millis(), self.jitter)
    }
}

impl FromStr for RetryPolicy {
    type Err = PolicyProblem;

    fn from_str(text: &str) -> Result<Self, PolicyProblem> {
        fn ms(word: &str) -> Option<Duration> {
            word.parse().ok().map(Duration::from_millis)
        }
        let read = || {
            let (shape, rest) = text.split_once(" cap ")?;
            let (cap, jitter) = rest.split_once(" jitter ")?;
            let mut words = shape.split(' ');
            let shape = match words.next()? {
                "fixed" => Shape::Fixed(ms(words.next()?)?),
                "exponential" => Shape::Exponential {
                    first: ms(words.next()?)?,
                    factor: words.next()?.parse().ok()?,
                },
                "list" => Shape::List(words.map(ms).collect::<Option<_>>()?),
                _ => return None,
            };
            Some(Self {
                shape,
                cap: ms(cap)?,
                jitter: jitter.parse().ok()?,
            })
        };
        let policy = read().ok_or(PolicyProblem::Unreadable)?;
        policy.problem().map_or(Ok(policy), Err)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: fn(u64) -> Duration = Duration::from_secs;

    #[test]
    fn each_shape_gives_its_delays_within_its_cap() {
        let list = RetryPolicy::list([S(1), S(30)]).jitter(0);
        assert_eq!(
            [0, 1, 2, u32::MAX].map(|n| list.delay(n)),
            [S(1), S(30), S(30), S(30)]
        );
        let doubling = RetryPolicy::exponential(S(1), 2.0).cap(S(10)).jitter(0);
        assert_eq!(
            [0, 1, 3, 4, u32::MAX].map(|n| doubling.delay(n)),
            [S(1), S(2), S(8), S(10), S(10)]
        );
        assert_eq!(RetryPolicy::fixed(S(5)).jitter(0).delay(7), S(5));
        assert_eq!(
            RetryPolicy::fixed(Duration::MAX)
                .jitter(1.0)
                .delay(0)
                .min(S(1))
                .as_secs()
                / 2,
            0
        );
    }

    #[test]
    fn a_policy_that_no_enqueue_would_take_has_a_delay() {
        let longest = RetryPolicy::fixed(Duration::MAX).cap(Duration::MAX);
        assert!(longest.jitter(1.0).delay(0) <= FAR);
        for jitter in [-5.0, 5.0, f64::NAN, f64::INFINITY] {
            assert_eq!(RetryPolicy::fixed(S(5)).jitter(jitter).delay(0), S(5));
        }
    }

    #[test]
    fn a_herd_of_retries_is_spread_unless_delays_are_exact() {
        let policies = [
            RetryPolicy::fixed(S(100)),
            RetryPolicy::exponential(S(100), 2.0),
            RetryPolicy::list([S(100)]),
        ];
        for policy in policies {
            let delays: Vec<_> = (0..500).map(|_| policy.delay(0)).collect();
            assert!(delays.iter().all(|d| (S(90)..=S(110)).contains(d)));
            for tenth in 0..10 {
                let (from, to) = (S(90 + 2 * tenth), S(92 + 2 * tenth));
                let within = delays.iter().filter(|d| (from..to).contains(d)).count();
                assert!(
                    (20..100).contains(&within),
                    "{within} from {from:?} to {to:?}"
                );
            }
            let exact = policy.jitter(0);
            assert!((0..100).all(|_| exact.delay(0) == S(100)));
        }
    }

    #[test]
    fn what_0_1_has_stored_is_read_as_it_was_meant() {
        // A policy of 0.1 without a jitter of its own.
        let stored: Result<RetryPolicy, _> = "fixed 5000 cap 604800000 jitter 0".parse();
        assert_eq!(stored, Ok(RetryPolicy::fixed(S(5)).jitter(0)));
    }

    #[test]
    fn what_is_stored_is_read_back() {
        let policies = [
            RetryPolicy::fixed(Duration::from_millis(500)),
            RetryPolicy::exponential(S(1), 1.5).cap(S(60)).jitter(0.25),
            RetryPolicy::list([S(1), Duration::ZERO]),
        ];
        for policy in policies {
            assert_eq!(policy.to_string().parse(), Ok(policy));
        }
        let far = RetryPolicy::fixed(Duration::MAX).jitter(0).to_string();
        let far = far.parse().map(|policy: RetryPolicy| policy.delay(0));
        assert_eq!(far, Ok(RETRY_DELAY_CAP));
        for bad in [
            "",
            "fixed",
            "fixed x cap 1 jitter 0",
            "list cap 1 jitter 0",
            "exponential 1 0 cap 1 jitter 0",
        ] {
            assert!(bad.parse::<RetryPolicy>().is_err(), "{bad}");
        }
    }
}
