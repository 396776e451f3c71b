//! Where what Redis holds differs from what it must hold.

use std::collections::BTreeSet;
use std::fmt::Write;

use crate::keys::{Key, Keys, Value};

/// One line for each difference; empty when there is none. `drift` is by how much of real time, in ms,
/// keys may be nearer to their expiry, which the model's clock does not know.
pub fn difference(expected: &Keys, found: &Keys, drift: u64) -> String {
    let mut lines = String::new();
    let names: BTreeSet<_> = expected.keys().chain(found.keys()).collect();
    for name in names {
        match (expected.get(name), found.get(name)) {
            (Some(expected), Some(found)) => compare(&mut lines, name, expected, found, drift),
            (Some(expected), None) => line(&mut lines, name, &expected.value, "nothing"),
            (None, Some(found)) => line(&mut lines, name, "nothing", &found.value),
            (None, None) => {}
        }
    }
    lines
}

fn compare(lines: &mut String, name: &str, expected: &Key, found: &Key, drift: u64) {
    match (&expected.value, &found.value) {
        (Value::Hash(a), Value::Hash(b)) => each(lines, name, a, b),
        (Value::Sorted(a), Value::Sorted(b)) => each(lines, name, a, b),
        (a, b) if a != b => line(lines, name, a, b),
        _ => {}
    }
    let fits = match (expected.expires_in, found.expires_in) {
        (None, None) => true,
        (Some(expected), Some(found)) => {
            (found..=found + drift + 2).contains(&expected) || expected + 1 == found
        }
        _ => false,
    };
    if !fits {
        let name = format!("{name}, expires in ms");
        line(lines, &name, expected.expires_in, found.expires_in);
    }
}

fn each<T: std::fmt::Debug + PartialEq>(
    lines: &mut String,
    name: &str,
    expected: &std::collections::BTreeMap<String, T>,
    found: &std::collections::BTreeMap<String, T>,
) {
    let members: BTreeSet<_> = expected.keys().chain(found.keys()).collect();
    for member in members {
        let (expected, found) = (expected.get(member), found.get(member));
        if expected != found {
            line(lines, &format!("{name} {member}"), expected, found);
        }
    }
}

fn line(
    lines: &mut String,
    what: &str,
    expected: impl std::fmt::Debug,
    found: impl std::fmt::Debug,
) {
    writeln!(lines, "  {what}: expected {expected:?}, found {found:?}").expect("memory is enough");
}
