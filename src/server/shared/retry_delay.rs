use std::time::Duration;

use crate::defaults::RETRY_DELAY_CAP;

/// How long a task waits after its n-th failure, n counted from 0: n⁴ + 15 + rand(0..30)·(n+1)
/// seconds, at most 7 days. The formula is Sidekiq's, by way of asynq.
pub fn default_retry_delay(retried: u32) -> Duration {
    let n = f64::from(retried);
    let jitter = rand::random_range(0..30u32);
    let seconds = n.powi(4) + 15.0 + f64::from(jitter) * (n + 1.0);
    Duration::from_secs_f64(seconds.min(RETRY_DELAY_CAP.as_secs_f64()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_delay_grows_as_documented_and_never_overflows() {
        for (retried, low, high) in [(0, 15, 45), (1, 16, 76), (5, 640, 820)] {
            let seconds = default_retry_delay(retried).as_secs();
            assert!((low..=high).contains(&seconds), "{retried}: {seconds}");
        }
        for retried in [30, 1_000, u32::MAX] {
            assert_eq!(default_retry_delay(retried), RETRY_DELAY_CAP);
        }
    }
}
