//! tests/README.md has every folder of tests, and every feature; CONTRIBUTING.md names files that are there.

use std::collections::BTreeSet;
use std::fs;

use crate::files::{root, text};
use crate::table::{quoted, rows};

/// The names of the folders in a folder.
fn folders(path: &str) -> BTreeSet<String> {
    let entries = fs::read_dir(root().join(path)).expect("the folder can be read");
    let paths = entries.map(|entry| entry.expect("it can be read").path());
    let folders = paths.filter(|path| path.is_dir());
    let name = |path: std::path::PathBuf| path.file_name().unwrap().to_string_lossy().into_owned();
    folders.map(name).collect()
}

#[test]
fn a_stranger_finds_every_folder() {
    let readme = text("tests/README.md");
    let table = rows(&readme);
    let mut named: BTreeSet<_> = table.iter().map(|row| quoted(row[0])[0]).collect();
    named.extend(["support/", "mutations/"]);
    let there: Vec<_> = folders("tests")
        .iter()
        .map(|name| format!("{name}/"))
        .collect();
    assert!(named.iter().eq(&there), "{named:?} {there:?}");

    let behaviour = table.iter().find(|row| quoted(row[0]) == ["behaviour/"]);
    let features: BTreeSet<_> = quoted(behaviour.unwrap()[1]).into_iter().collect();
    let there = folders("tests/behaviour");
    assert!(features.iter().eq(&there), "{features:?} {there:?}");
}

#[test]
fn a_contributor_is_sent_to_files_that_are_there() {
    let contributing = text("CONTRIBUTING.md");
    let folders = ["src/", "lua/", "tests/", ".ci/"];
    let is_path = |word: &&str| folders.iter().any(|folder| word.starts_with(folder));
    let named: BTreeSet<_> = quoted(&contributing).into_iter().filter(is_path).collect();
    assert!(named.len() > 10, "{named:?}");
    let missing: Vec<_> = named
        .into_iter()
        .filter(|path| !root().join(path).exists())
        .collect();
    assert_eq!(missing, [""; 0]);
}
