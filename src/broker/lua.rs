//! What stands in Redis as a script: its own text, behind what it uses of the Lua that scripts share.

use std::collections::HashSet;

/// In the order in which a script may use them.
const SHARED: [&str; 3] = [
    include_str!("../../lua/shared/base.lua"),
    include_str!("../../lua/shared/ends.lua"),
    include_str!("../../lua/shared/settle.lua"),
];

/// Ends the first line of a script's own function that most calls do not need. What only it uses of the
/// shared Lua is created within it: to create a function takes time in each call.
const SELDOM: &str = "-- seldom";

/// Puts what the script uses of the shared Lua between its `#!lua` line, which must stay the first
/// byte, and its text.
pub fn link(text: &str) -> String {
    let (flags, body) = text.split_once('\n').unwrap_or((text, ""));
    let body: Vec<_> = body.lines().filter(|line| !is_code_free(line)).collect();
    let parts = parts(&body);
    let always = parts.iter().filter(|(_, seldom)| !seldom);
    let shared = used_by(always.flat_map(|(lines, _)| *lines));
    let mut linked = vec![flags];
    linked.extend(shared.iter().flatten());
    for (lines, seldom) in parts {
        if seldom {
            let own = used_by(lines).into_iter().filter(|it| !shared.contains(it));
            linked.extend(own.flatten());
        }
        linked.extend(lines);
    }
    linked.join("\n")
}

/// Cuts a script into what stands within its functions that are seldom needed, `true`, and the rest.
fn parts<'a>(body: &'a [&'a str]) -> Vec<(&'a [&'a str], bool)> {
    let mut parts = Vec::new();
    let (mut rest, mut seldom) = (body, false);
    while !rest.is_empty() {
        let end = if seldom {
            rest.iter().position(|line| *line == "end")
        } else {
            let first = rest.iter().position(|line| line.ends_with(SELDOM));
            first.map(|first| first + 1)
        };
        let (part, behind) = rest.split_at(end.unwrap_or(rest.len()));
        parts.push((part, seldom));
        (rest, seldom) = (behind, !seldom);
    }
    parts
}

/// The shared statements that these lines use, in order.
fn used_by<'a>(lines: impl IntoIterator<Item = &'a &'a str>) -> Vec<Vec<&'static str>> {
    let mut words: HashSet<_> = lines.into_iter().copied().flat_map(words).collect();
    // A local is used only behind its definition: from the last statement to the first, all that may
    // use the next one is known.
    let mut used = Vec::new();
    for statement in statements().into_iter().rev() {
        if names(statement[0]).any(|name| words.contains(name)) {
            words.extend(statement.iter().copied().flat_map(self::words));
            used.push(statement);
        }
    }
    used.reverse();
    used
}

/// The statements of the shared Lua, each of which begins with `local` at the left margin.
fn statements() -> Vec<Vec<&'static str>> {
    let mut statements: Vec<Vec<_>> = Vec::new();
    let lines = SHARED.iter().flat_map(|file| file.lines());
    for line in lines.filter(|line| !is_code_free(line)) {
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

fn is_code_free(line: &str) -> bool {
    let line = line.trim_start();
    line.is_empty() || line.starts_with("--")
}
