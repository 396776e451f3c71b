use redis::Script;

pub fn claim() -> Script {
    compose(include_str!("../../lua/claim.lua"))
}

pub fn complete() -> Script {
    compose(include_str!("../../lua/complete.lua"))
}

/// As the library sends it: the shared Lua between the `#!lua` line and the script's text.
fn compose(text: &str) -> Script {
    let shared = [
        include_str!("../../lua/shared/base.lua"),
        include_str!("../../lua/shared/ends.lua"),
    ];
    let (flags, body) = text.split_once('\n').expect("a script has many lines");
    Script::new(&[&[flags], &shared[..], &[body]].concat().join("\n"))
}
