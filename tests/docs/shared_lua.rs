//! The files that scripts share: who uses which, and their names.

use std::collections::BTreeSet;
use std::iter::once;

use crate::files::text;
use crate::lua::{SHARED, assemble, used};
use crate::scripts::transitions;
use crate::table::{quoted, rows, section};

/// The code, without comments.
fn code(lua: &str) -> impl Iterator<Item = &str> {
    lua.lines().filter_map(|line| line.split("--").next())
}

/// The words of a text that may be names: not fields, such as `task.key`, and not the keys of a table.
fn words(lua: &str) -> BTreeSet<&str> {
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let mut words = BTreeSet::new();
    for line in code(lua) {
        // Every other piece is a text.
        for piece in line.split('\'').step_by(2) {
            for (at, _) in piece.match_indices(is_word) {
                let before = piece[..at].chars().next_back();
                if !before.is_some_and(|c| is_word(c) || c == '.') {
                    let rest = &piece[at..];
                    let word = &rest[..rest.find(|c| !is_word(c)).unwrap_or(rest.len())];
                    let is_table_key = rest[word.len()..].starts_with(" = ")
                        && piece[..at].trim_end().ends_with(['{', ',']);
                    if !is_table_key {
                        words.insert(word);
                    }
                }
            }
        }
    }
    words
}

/// What a text defines at its left margin, for those behind it.
fn definitions(lua: &str) -> BTreeSet<&str> {
    let lines = code(lua).filter_map(|line| line.strip_prefix("local "));
    let lines = lines.map(|line| line.strip_prefix("function ").unwrap_or(line));
    let names = lines.flat_map(|line| line.split(['=', '(']).next());
    let names = names.flat_map(|names| names.split(','));
    names.map(str::trim).collect()
}

/// All names that a text gives to locals and parameters, each as often as it does.
fn all_names(lua: &str) -> Vec<&str> {
    let mut names = Vec::new();
    for line in code(lua).map(str::trim_start) {
        let function = line.strip_prefix("local function ");
        if let Some((name, rest)) = function.and_then(|line| line.split_once('(')) {
            let parameters = rest.split(')').next().unwrap_or_default();
            names.extend(once(name).chain(parameters.split(',')));
        } else if let Some(rest) = line.strip_prefix("local ") {
            names.extend(rest.split('=').next().unwrap_or_default().split(','));
        } else if let Some(rest) = line.strip_prefix("for ") {
            let end = rest.find(" in ").or(rest.find(" = "));
            names.extend(rest[..end.unwrap_or(0)].split(','));
        }
    }
    names.into_iter().map(str::trim).collect()
}

#[test]
fn a_script_has_the_files_that_it_names_before_its_own_text() {
    let script = "#!lua flags=allow-oom\n-- x: y\n-- Uses: time, keys\n\nreturn now\n";
    let assembled = assemble(script);
    let (flags, rest) = assembled.split_once('\n').unwrap();
    assert_eq!(flags, "#!lua flags=allow-oom");
    let (time, keys) = (text("lua/shared/time.lua"), text("lua/shared/keys.lua"));
    let own = "-- x: y\n-- Uses: time, keys\n\nreturn now\n";
    let expected = format!("-- lua/shared/time.lua\n{time}\n-- lua/shared/keys.lua\n{keys}\n{own}");
    assert_eq!(rest, expected);
}

#[test]
fn every_script_names_the_shared_files_that_it_needs_and_no_others() {
    let known: Vec<_> = SHARED.iter().map(|(name, _)| *name).collect();
    for path in transitions() {
        let script = text(&path);
        let path = path.display();
        let named = used(&script);
        let in_order: Vec<_> = known.iter().filter(|name| named.contains(name)).collect();
        assert_eq!(in_order, named.iter().collect::<Vec<_>>(), "{path}");
        // From the script itself upwards: what each file needs is in one before it.
        let mut needed = words(&script);
        for (name, shared) in SHARED.iter().rev() {
            let is_needed = !definitions(shared).is_disjoint(&needed);
            assert_eq!(is_needed, named.contains(name), "{path}: {name}");
            if is_needed {
                needed.extend(words(shared));
            }
        }
    }
}

#[test]
fn no_name_of_a_shared_file_means_something_else_anywhere() {
    let mut shared: Vec<_> = SHARED
        .iter()
        .flat_map(|(_, lua)| definitions(lua))
        .collect();
    shared.sort_unstable();
    let twice = shared.windows(2).find(|pair| pair[0] == pair[1]);
    assert_eq!(twice, None);
    for (name, lua) in SHARED {
        let own = definitions(lua);
        for local in all_names(lua) {
            let is_taken = shared.contains(&local) && !own.contains(local);
            assert!(!is_taken, "lua/shared/{name}.lua: {local}");
        }
    }
    for path in transitions() {
        let script = text(&path);
        let used = used(&script);
        let files = SHARED.iter().filter(|(name, _)| used.contains(name));
        let taken: BTreeSet<_> = files.flat_map(|(_, lua)| definitions(lua)).collect();
        for local in all_names(&script) {
            assert!(!taken.contains(local), "{}: {local}", path.display());
        }
    }
}

#[test]
fn every_key_is_in_the_table_of_keys() {
    let architecture = text("ARCHITECTURE.md");
    let table = rows(section(&architecture, "## Data in Redis"));
    let listed: BTreeSet<_> = table.iter().flat_map(|row| quoted(row[0])).collect();
    let scripts = transitions().into_iter().map(text);
    let shared = SHARED.iter().map(|(_, lua)| (*lua).to_owned());
    for lua in scripts.chain(shared) {
        for (_, rest) in code(&lua).filter_map(|line| line.split_once("key('")) {
            let name = &rest[..rest.find('\'').unwrap_or(0)];
            let is_listed = listed.iter().any(|key| {
                let key = key.trim_start_matches(':');
                key == name || (name.ends_with(':') && key.starts_with(&format!("{name}<")))
            });
            assert!(is_listed || name == "ended", "{name}");
        }
    }
}
