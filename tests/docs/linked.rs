//! What stands in Redis of a script and of the Lua that scripts share.

use crate::files::text;
use crate::lua::link;
use crate::scripts::transitions;

#[test]
fn a_script_has_what_it_uses_and_nothing_else() {
    let linked = link("#!lua flags=allow-oom\n-- count() in a comment\nreturn after(1)\n");
    let lines: Vec<_> = linked.lines().collect();
    assert_eq!(lines[0], "#!lua flags=allow-oom");
    assert!(linked.contains("local function after(ms)"), "{linked}");
    // What `after` uses in turn, with all that sets it.
    assert!(
        linked.contains("local now_us\nif ARGV[1] == ''"),
        "{linked}"
    );
    for unused in [
        "function count",
        "META",
        "function day",
        "local now =",
        "--",
    ] {
        assert!(!linked.contains(unused), "{unused} in {linked}");
    }
    assert_eq!(lines.last(), Some(&"return after(1)"));
}

#[test]
fn what_only_a_seldom_called_function_uses_is_created_within_it() {
    let text =
        "#!lua\nlocal function late() -- seldom\n  return after(now)\nend\nreturn int(now)\n";
    let linked = link(text);
    let place = |line: &str| linked.find(line).unwrap();
    let late = place("local function late()");
    assert!(place("local function int(n)") < late, "{linked}");
    assert!(place("local now =") < late, "{linked}");
    assert!(place("local function after(ms)") > late, "{linked}");
    assert!(
        linked.ends_with("  return after(now)\nend\nreturn int(now)"),
        "{linked}"
    );
    assert_eq!(linked.matches("local now =").count(), 1);
}

#[test]
fn no_script_has_a_name_twice() {
    for path in transitions() {
        let linked = link(&text(&path));
        // Those of the shared Lua and of the script itself; others are indented.
        let lines = linked
            .lines()
            .filter_map(|line| line.strip_prefix("local "));
        let mut defined: Vec<_> = lines
            .map(|line| line.strip_prefix("function ").unwrap_or(line))
            .flat_map(|line| line.split(['=', '(']).next())
            .flat_map(|names| names.split(','))
            .map(str::trim)
            .collect();
        defined.sort_unstable();
        let twice = defined.windows(2).find(|pair| pair[0] == pair[1]);
        assert_eq!(twice, None, "{}", path.display());
    }
}
