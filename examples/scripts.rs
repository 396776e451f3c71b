//! Prints the scripts as Redis gets them, with line numbers: those in Redis' errors, such as
//! `user_script:123: …`.
//!
//! ```text
//! cargo run --example scripts             the names of all
//! cargo run --example scripts NAME …      these, such as retry or operator/run
//! ```

#[allow(dead_code)]
#[path = "../src/broker/lua.rs"]
mod lua;

use std::path::Path;
use std::{fs, io};

fn main() -> io::Result<()> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("lua");
    let names: Vec<_> = std::env::args().skip(1).collect();
    if names.is_empty() {
        list(&folder, "")?;
        return list(&folder.join("operator"), "operator/");
    }
    for name in names {
        let script = fs::read_to_string(folder.join(&name).with_extension("lua"))?;
        for (i, line) in lua::assemble(&script).lines().enumerate() {
            println!("{:4} {line}", i + 1);
        }
    }
    Ok(())
}

fn list(folder: &Path, before: &str) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if let (Some(name), Some("lua")) = (
            path.file_stem().and_then(|name| name.to_str()),
            path.extension().and_then(|ending| ending.to_str()),
        ) {
            println!("{before}{name}");
        }
    }
    Ok(())
}
