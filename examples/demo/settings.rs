//! The numbers of the demo.

use std::time::Duration;

use windlass::defaults;

/// Shortened, so that one does not have to wait for a lease to run out.
pub const LEASE: Duration = Duration::from_secs(3);
pub const CLOCK_SKEW: Duration = Duration::from_millis(500);
pub const SCAN: Duration = Duration::from_secs(1);
pub const RETRY_DELAY: Duration = Duration::from_millis(500);

/// How long the work should take, with all cores.
pub const WORK: Duration = Duration::from_secs(15);
/// How long everything may take.
pub const LIMIT: Duration = Duration::from_secs(120);
/// How long ending processes may take.
pub const PATIENCE: Duration = Duration::from_secs(10);

pub const QUEUE: &str = "files";
pub const MAX_FILES: usize = 5_000;
pub const MAX_BYTES: u64 = 200 * 1024 * 1024;
/// With fewer, a server could not be caught in the middle of its work.
pub const MIN_FILES: usize = 100;

/// How much must be done before a server is killed, in percent, and how many tasks it must hold.
pub const KILL_AT: usize = 40;
pub const MIN_HELD: usize = 5;

/// How long the slow task takes: past the end of a lease, which is extended while its server lives.
pub const SLOW: Duration = Duration::from_secs(5);
pub const POISON_RETRIES: u32 = 2;

pub fn cores() -> usize {
    std::thread::available_parallelism().map_or(2, |n| n.get())
}

/// Handlers that one server runs at a time: one server alone can use all cores, and on a slow machine
/// too it is always in the middle of enough tasks to be worth killing.
pub fn concurrency() -> usize {
    cores().max(16)
}

pub fn seconds(duration: Duration) -> String {
    format!("{} s", duration.as_secs_f64())
}

/// What is not as it would be by default.
pub fn differences() -> String {
    let pairs = [
        ("lease", LEASE, defaults::LEASE),
        ("heartbeat", LEASE / 3, defaults::HEARTBEAT),
        ("clock skew", CLOCK_SKEW, defaults::CLOCK_SKEW),
        ("scan", SCAN, defaults::SCAN),
    ];
    let shown = pairs.map(|(name, here, default)| {
        format!("{name} {} (default {})", seconds(here), seconds(default))
    });
    shown.join(", ")
}
