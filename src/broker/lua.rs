//! The text of a script as Redis gets it: the shared files that its header names after `-- Uses: `, then
//! the script itself.

/// The shared files, in the order in which a script has them: each may use only those before it.
pub const SHARED: [(&str, &str); 21] = [
    ("values", include_str!("../../lua/shared/values.lua")),
    ("time", include_str!("../../lua/shared/time.lua")),
    ("keys", include_str!("../../lua/shared/keys.lua")),
    ("sizes", include_str!("../../lua/shared/sizes.lua")),
    ("types", include_str!("../../lua/shared/types.lua")),
    ("schema", include_str!("../../lua/shared/schema.lua")),
    ("wake", include_str!("../../lua/shared/wake.lua")),
    ("score", include_str!("../../lua/shared/score.lua")),
    ("due", include_str!("../../lua/shared/due.lua")),
    ("deadlines", include_str!("../../lua/shared/deadlines.lua")),
    ("waiting", include_str!("../../lua/shared/waiting.lua")),
    ("counters", include_str!("../../lua/shared/counters.lua")),
    ("records", include_str!("../../lua/shared/records.lua")),
    ("locks", include_str!("../../lua/shared/locks.lua")),
    ("taking", include_str!("../../lua/shared/taking.lua")),
    ("waiters", include_str!("../../lua/shared/waiters.lua")),
    ("broken", include_str!("../../lua/shared/broken.lua")),
    ("endings", include_str!("../../lua/shared/endings.lua")),
    ("erase", include_str!("../../lua/shared/erase.lua")),
    ("leases", include_str!("../../lua/shared/leases.lua")),
    ("settle", include_str!("../../lua/shared/settle.lua")),
];

/// Puts what a script uses between its `#!lua` line, which must be the first, and its own text. All of
/// it would do too, but creating what is not used takes time in each call.
pub fn assemble(script: &str) -> String {
    let (flags, own) = script.split_once('\n').unwrap_or((script, ""));
    let used = used(script);
    let mut text = format!("{flags}\n");
    for (name, shared) in SHARED.iter().filter(|(name, _)| used.contains(name)) {
        text += &format!("-- lua/shared/{name}.lua\n{shared}\n");
    }
    text + own
}

/// The names of the shared files that a script uses.
pub fn used(script: &str) -> Vec<&str> {
    let header = script.lines().skip(1);
    let mut header = header.take_while(|line| line.starts_with("--"));
    let used = header.find_map(|line| line.strip_prefix("-- Uses: "));
    used.map_or(Vec::new(), |used| used.split(", ").collect())
}
