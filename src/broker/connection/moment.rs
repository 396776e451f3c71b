use std::sync::LazyLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// When something was last so, to the millisecond; read and written without a lock.
#[derive(Debug)]
pub(super) struct Moment(AtomicU64);

static START: LazyLock<Instant> = LazyLock::new(Instant::now);

impl Moment {
    pub(super) fn now() -> Self {
        Self(AtomicU64::new(Self::millis()))
    }

    pub(super) fn is_now(&self) {
        self.0.store(Self::millis(), Ordering::Relaxed);
    }

    /// As long ago as can be told.
    pub(super) fn is_long_ago(&self) {
        self.0.store(0, Ordering::Relaxed);
    }

    pub(super) fn ago(&self) -> Duration {
        Duration::from_millis(Self::millis().saturating_sub(self.0.load(Ordering::Relaxed)))
    }

    fn millis() -> u64 {
        // Begins far from zero, which is long ago.
        const BEFORE: u64 = 1 << 40;
        let since = START.elapsed().as_millis();
        BEFORE + u64::try_from(since).unwrap_or(u64::MAX >> 1)
    }
}
