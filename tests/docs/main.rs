//! What is written down agrees with what is built: the list of shared behaviour, the defaults, the
//! scripts. Needs no Redis.

mod checklist;
mod defaults;
mod files;
mod folders;
#[path = "../../src/broker/lua.rs"]
mod lua;
mod scripts;
mod shared_lua;
mod table;
