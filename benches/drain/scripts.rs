use redis::Script;

#[path = "../../src/broker/lua.rs"]
mod lua;

pub fn claim() -> Script {
    Script::new(&lua::assemble(include_str!("../../lua/claim.lua")))
}

pub fn complete() -> Script {
    Script::new(&lua::assemble(include_str!("../../lua/complete.lua")))
}
