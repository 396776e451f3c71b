//! Key prefixes.

use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, Hasher};

/// A key prefix that starts with `name` and that no other test uses, in this
/// process or in another. Give `name` no braces: they would make a hash tag.
pub fn unique_prefix(name: &str) -> String {
    format!("{name}-{:016x}", random())
}

/// 64 bits that differ between calls and between processes.
pub(super) fn random() -> u64 {
    // Each `RandomState` has new keys, and even the hash of nothing depends on them.
    RandomState::new().build_hasher().finish()
}
