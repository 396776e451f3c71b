//! The Lua scripts: their headers, their Rust side, and their place in ARCHITECTURE.md.

use std::collections::BTreeSet;
use std::path::PathBuf;

use windlass::defaults::PRIORITY_HEAD_START;

use crate::files::{below, text};
use crate::table::{quoted, rows, section};

const SHARED: &str = "lua/shared";

/// The scripts, without the Lua that they share.
pub fn transitions() -> Vec<PathBuf> {
    let mut scripts = below("lua", "lua");
    scripts.retain(|path| !path.starts_with(SHARED));
    scripts
}

/// The comment at the top of a script, after its `#!lua` line.
fn header(script: &str) -> Vec<&str> {
    let lines = script.lines().skip(1);
    lines.take_while(|line| line.starts_with("--")).collect()
}

#[test]
fn every_script_has_its_header() {
    for path in transitions() {
        let script = text(&path);
        let (path, name) = (path.display(), path.file_stem().unwrap().to_string_lossy());
        assert!(script.starts_with("#!lua"), "{path}: not the first byte");
        let header = header(&script);
        assert!(
            header[0].starts_with(&format!("-- {name}: ")),
            "{path}: no name"
        );
        for start in ["-- KEYS[1] ", "-- ARGV[1] ", "-- returns ", "-- Keeps: "] {
            let lines = header.iter().filter(|line| line.starts_with(start));
            assert_eq!(lines.count(), 1, "{path}: {start:?}");
        }
        // An argument that the script reads by number is named in its header.
        for n in 2..20 {
            let read = script
                .lines()
                .any(|line| !line.starts_with("--") && line.contains(&format!("ARGV[{n}]")));
            let named = (2..=n).any(|m| {
                let exact = m == n
                    && header
                        .iter()
                        .any(|l| l.starts_with(&format!("-- ARGV[{m}]")));
                exact
                    || header
                        .iter()
                        .any(|line| line.starts_with(&format!("-- ARGV[{m}…]")))
            });
            assert!(!read || named, "{path}: ARGV[{n}] is not explained");
        }
    }
}

#[test]
fn what_a_full_redis_refuses_says_so() {
    for path in transitions() {
        let script = text(&path);
        let flags = script.lines().next().unwrap();
        let runs_when_full = flags.contains("allow-oom") || flags.contains("no-writes");
        let says = header(&script).join(" ").replace(" -- ", " ");
        let refused = says.contains("ot allowed when Redis is out of memory");
        assert_ne!(runs_when_full, refused, "{}: {flags}", path.display());
    }
}

#[test]
fn every_script_has_one_user() {
    let sources: String = below("src", "rs").iter().map(text).collect();
    for path in below("lua", "lua") {
        let path = path.to_string_lossy();
        let users = sources.matches(&format!("/{path}\")")).count();
        assert_eq!(users, 1, "{path}");
    }
    let included = sources.matches(".lua\")").count();
    assert_eq!(included, below("lua", "lua").len());
}

#[test]
fn the_table_of_transitions_has_every_script() {
    let architecture = text("ARCHITECTURE.md");
    let table = rows(section(&architecture, "### Transitions"));
    let listed: Vec<_> = table.iter().flat_map(|row| quoted(row[0])).collect();
    let once: BTreeSet<_> = listed
        .iter()
        .map(|name| format!("lua/{name}.lua"))
        .collect();
    assert_eq!(once.len(), listed.len(), "each once: {listed:?}");
    let scripts = transitions();
    let scripts = scripts
        .iter()
        .map(|path| path.to_string_lossy().into_owned());
    assert_eq!(once, scripts.collect());
}

#[test]
fn the_table_of_what_scripts_share_has_every_file() {
    let architecture = text("ARCHITECTURE.md");
    let table = rows(section(&architecture, "### What scripts share"));
    let mut listed: Vec<_> = table.iter().flat_map(|row| quoted(row[0])).collect();
    listed.sort_unstable();
    let mut files: Vec<_> = below("lua/shared", "lua")
        .iter()
        .map(|path| path.file_stem().unwrap().to_string_lossy().into_owned())
        .collect();
    files.sort_unstable();
    assert_eq!(listed, files);
}

#[test]
fn the_scripts_that_leave_a_wake_token_are_marked() {
    let architecture = text("ARCHITECTURE.md");
    let table = rows(section(&architecture, "### Transitions"));
    for name in table.iter().flat_map(|row| row[0].split(", ")) {
        let script = text(format!("lua/{}.lua", quoted(name)[0]));
        let wakes = script.lines().any(|line| line.trim() == "wake()");
        assert_eq!(name.ends_with('†'), wakes, "{name}");
    }
}

#[test]
fn the_head_start_of_a_priority_is_what_the_docs_say() {
    let base = text("lua/shared/score.lua");
    let (_, rest) = base
        .split_once("local HEAD_START_US = ")
        .expect("it is set there");
    let micros: u64 = rest.lines().next().unwrap().parse().unwrap();
    let seconds = PRIORITY_HEAD_START.as_secs();
    assert_eq!(micros, seconds * 1_000_000);
    let doc = format!("each level counts as having waited {seconds} s longer");
    assert!(text("src/task/new_task.rs").contains(&doc), "{doc}");
    let doc = format!("less {seconds} s for each level of priority");
    assert!(text("ARCHITECTURE.md").contains(&doc), "{doc}");
}
