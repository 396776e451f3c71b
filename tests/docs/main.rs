//! What is written down agrees with what is built: the list of shared behaviour, the defaults, the
//! scripts, where things go. Needs no Redis.

mod checklist;
mod defaults;
mod files;
#[path = "../../src/broker/lua.rs"]
mod lua;
mod paths;
mod scripts;
mod shared_lua;
mod table;
