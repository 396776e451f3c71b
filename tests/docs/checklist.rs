//! tests/CHECKLIST.md: each test that it names is there and runs, and its counts are right.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use crate::files::{root, text};
use crate::table::{quoted, rows, section};

/// What a row may say of the behaviour here.
const STANDINGS: [&str; 4] = ["same", "differs", "left out", "not shown yet"];

fn list() -> String {
    text("tests/CHECKLIST.md")
}

/// The rows of all sections but the last one, which counts them.
fn all_rows(list: &str) -> Vec<Vec<&str>> {
    let counted = list.split("\n## Counts\n").next().unwrap();
    rows(counted)
}

#[track_caller]
fn standing(row: &[&str]) -> &'static str {
    let found = STANDINGS.into_iter().find(|word| {
        let rest = row[1].strip_prefix(word);
        rest.is_some_and(|rest| rest.is_empty() || (rest.starts_with(": ") && rest.len() > 10))
    });
    found.unwrap_or_else(|| panic!("says neither of {STANDINGS:?}: {row:?}"))
}

#[test]
fn every_row_shows_what_it_says_or_says_why_not() {
    let list = list();
    for row in all_rows(&list) {
        assert_eq!(row.len(), 3, "{row:?}");
        let tests = quoted(row[2]);
        match standing(&row) {
            "same" => assert!(row[1] == "same" && !tests.is_empty(), "{row:?}"),
            "differs" => assert!(row[1] != "differs" && !tests.is_empty(), "{row:?}"),
            reason => assert!(row[1] != reason && row[2].is_empty(), "{row:?}"),
        }
    }
}

#[test]
fn every_test_that_is_named_runs() {
    let list = list();
    let named: BTreeSet<_> = all_rows(&list)
        .iter()
        .flat_map(|row| quoted(row[2]))
        .collect();
    assert!(named.len() > 100, "{}", named.len());
    let missing: Vec<_> = named
        .into_iter()
        .filter_map(|name| find(name).err())
        .collect();
    assert!(missing.is_empty(), "{missing:#?}");
}

#[test]
fn the_counts_are_right() {
    let list = list();
    let found: Vec<_> = all_rows(&list).iter().map(|row| standing(row)).collect();
    let counted = rows(section(&list, "## Counts"));
    let expected = STANDINGS.map(|word| {
        let count = found.iter().filter(|standing| **standing == word).count();
        [word.to_owned(), count.to_string()]
    });
    assert_eq!(counted, expected);
}

/// Looks for a test by its path, such as `tests/life::unique::keys::name` or `src::task::id::name`.
fn find(name: &str) -> Result<(), String> {
    let mut modules: Vec<_> = name.split("::").collect();
    let test = modules.pop().unwrap_or_default();
    let mut modules = modules.into_iter();
    let (mut file, mut folder) = match modules.next() {
        Some("src") => (PathBuf::from("src/lib.rs"), PathBuf::from("src")),
        Some("examples") => {
            let example = modules.next().unwrap_or_default();
            (format!("examples/{example}.rs").into(), PathBuf::new())
        }
        Some(binary) if binary.starts_with("tests/") => {
            (Path::new(binary).join("main.rs"), binary.into())
        }
        _ => return Err(format!("{name}: no such path of a test")),
    };
    for module in modules {
        let parent = std::fs::read_to_string(root().join(&file)).unwrap_or_default();
        let declared = parent.lines().any(|line| {
            let line = line
                .trim_start_matches("pub ")
                .trim_start_matches("pub(crate) ");
            line == format!("mod {module};")
        });
        if !declared {
            return Err(format!("{name}: {} has no `mod {module};`", file.display()));
        }
        let single = folder.join(format!("{module}.rs"));
        folder.push(module);
        file = if root().join(&single).exists() {
            single
        } else {
            folder.join("mod.rs")
        };
    }
    let source = std::fs::read_to_string(root().join(&file)).unwrap_or_default();
    if tests_in(&source).contains(test) {
        Ok(())
    } else {
        Err(format!("{name}: no such test in {}", file.display()))
    }
}

/// The names of the functions that are marked as tests and not as ignored.
fn tests_in(source: &str) -> BTreeSet<&str> {
    let mut tests = BTreeSet::new();
    let mut attributes = Vec::new();
    for line in source.lines().map(str::trim) {
        if line.starts_with("#[") {
            attributes.push(line);
            continue;
        }
        let function = line.trim_start_matches("async ").strip_prefix("fn ");
        let marked = |start: &str| attributes.iter().any(|line| line.starts_with(start));
        let is_test = marked("#[test]") || marked("#[tokio::test");
        if let (Some(function), true, false) = (function, is_test, marked("#[ignore")) {
            tests.extend(function.split('(').next());
        }
        attributes.clear();
    }
    tests
}

#[test]
fn only_tests_that_run_are_found() {
    let source = "#[test]\nfn plain() {}\n#[tokio::test(flavor = \"x\")]\nasync fn awaited() {}\n\
        #[test]\n#[ignore = \"slow\"]\nfn ignored() {}\nfn helper() {}\n";
    assert_eq!(tests_in(source), BTreeSet::from(["awaited", "plain"]));
    find("tests/docs::checklist::only_tests_that_run_are_found").unwrap();
    for wrong in [
        "tests/docs::checklist::no_such_test",
        "tests/docs::checklist::find",
        "tests/docs::files::only_tests_that_run_are_found",
        "tests/nowhere::only_tests_that_run_are_found",
        "only_tests_that_run_are_found",
    ] {
        find(wrong).unwrap_err();
    }
}
