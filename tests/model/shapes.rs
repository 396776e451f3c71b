//! What the operations choose from. Few of each, so that they meet.

use crate::op::{Id, Server};

pub const IDS: [Id; 8] = ["a", "b", "c", "d", "e", "f", "g", "h"];
pub const KINDS: [&str; 2] = ["mail", "report"];
pub const PAYLOADS: [&str; 2] = ["p", "q"];
/// Two of it do not fit into one claim.
pub const LARGE: &str = "large";
pub const LARGE_BYTES: usize = 600_000;
pub const LOCK_KEYS: [&str; 2] = ["k", "l"];
pub const SERVERS: [Server; 3] = ["s1", "s2", "s3"];
pub const POLICY: &str = "fixed 5000 cap 604800000 jitter 0";
pub const ERROR: &str = "it failed";
pub const LATE: &str = "its deadline passed";
pub const LATE_AFTER_ERROR: &str = "its deadline passed: it failed";
pub const SKEW: u64 = 5_000;
pub const SPANS: [u64; 6] = [1, 1_000, 5_000, 30_000, 120_000, 3_600_000];

/// Half a minute before the end of a day and of a leap year's February, in µs since the epoch.
pub const START: u64 = 1_709_251_170_000_400;

/// A payload's bytes.
pub fn bytes(payload: &str) -> Vec<u8> {
    match payload {
        LARGE => vec![b'x'; LARGE_BYTES],
        small => small.as_bytes().to_vec(),
    }
}

/// A payload as text, a large one by its length.
pub fn shown(payload: &str) -> String {
    match payload {
        LARGE => crate::keys::by_length(LARGE_BYTES),
        small => small.to_owned(),
    }
}
