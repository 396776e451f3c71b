//! What stands in Redis as a script: its own text, behind what it uses of the Lua that scripts share.

use std::collections::HashSet;

/// In the order in which a script may use them.
const SHARED: [&str; 3] = [
    include_str!("../../lua/shared/base.lua"),
    include_str!("../../lua/shared/ends.lua"),
    include_str!("../../lua/shared/settle.lua"),
];

/// Puts what the script uses of the shared Lua between its `#!lua` line, which must stay the first
/// byte, and its text.
pub fn link(text: &str) -> String {
    let (flags, body) = text.split_once('\n').unwrap_or((text, ""));
    let body: Vec<_> = body.lines().filter(|line| !is_comment(line)).collect();
    let mut words: HashSet<_> = body.iter().copied().flat_map(words).collect();
    // A local is used only behind its definition: from the last statement to the first, all that may
    // use the next one is known.
    let mut used = Vec::new();
    for statement in statements().into_iter().rev() {
        if names(statement[0]).any(|name| words.contains(name)) {
            words.extend(statement.iter().copied().flat_map(self::words));
            used.push(statement);
        }
    }
    let shared = used.into_iter().rev().flatten();
    let lines: Vec<_> = [flags].into_iter().chain(shared).chain(body).collect();
    lines.join("\n")
}

/// The statements of the shared Lua, each of which begins with `local` at the left margin.
fn statements() -> Vec<Vec<&'static str>> {
    let mut statements: Vec<Vec<_>> = Vec::new();
    let lines = SHARED.iter().flat_map(|file| file.lines());
    for line in lines.filter(|line| !line.is_empty() && !is_comment(line)) {
        match statements.last_mut() {
            Some(statement) if !line.starts_with("local ") => statement.push(line),
            _ => statements.push(vec![line]),
        }
    }
    statements
}

/// What the first line of a statement defines.
fn names(line: &str) -> impl Iterator<Item = &str> {
    let definition = line.strip_prefix("local ").unwrap_or(line);
    let definition = definition.strip_prefix("function ").unwrap_or(definition);
    let end = definition.find(['(', '=']).unwrap_or(definition.len());
    words(&definition[..end])
}

fn words(line: &str) -> impl Iterator<Item = &str> {
    line.split(|c: char| !c.is_ascii_alphanumeric() && c != '_')
        .filter(|word| !word.is_empty())
}

fn is_comment(line: &str) -> bool {
    line.trim_start().starts_with("--")
}
