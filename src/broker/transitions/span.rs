use std::time::Duration;

use crate::defaults::FAR;

/// A span in whole ms, rounded up, because nothing may be due early.
pub(super) fn whole_ms(span: Duration) -> u128 {
    span.as_nanos().div_ceil(1_000_000)
}

/// A delay in whole ms. A user's function may answer one that no score can hold: it is cut at the
/// longest that an enqueue takes.
pub(super) fn delay_ms(delay: Duration) -> u64 {
    whole_ms(delay.min(FAR)) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delays_are_rounded_up_and_cut() {
        for (delay, ms) in [(0, 0), (1, 1), (999_999, 1), (1_000_000, 1), (1_000_001, 2)] {
            assert_eq!(delay_ms(Duration::from_nanos(delay)), ms);
        }
        assert_eq!(u128::from(delay_ms(Duration::MAX)), FAR.as_millis());
    }
}
