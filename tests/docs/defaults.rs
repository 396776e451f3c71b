//! Defaults are written once, in src/defaults.rs; what the docs say of them is compared with it.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use windlass::defaults as is;

use crate::files::{below, text};
use crate::table::{quoted, rows, section};

/// How the docs write a value.
trait Shown {
    fn shown(self) -> String;
}

impl Shown for &str {
    fn shown(self) -> String {
        format!("`{self}`")
    }
}

impl Shown for Duration {
    fn shown(self) -> String {
        let seconds = self.as_secs();
        if seconds == 0 {
            return format!("{} ms", self.as_millis());
        }
        assert_eq!(self, Duration::from_secs(seconds), "whole seconds");
        let units = [(86_400, "days"), (3600, "h"), (60, "min"), (1, "s")];
        let unit = units
            .into_iter()
            .find(|(n, _)| seconds.is_multiple_of(*n) && seconds >= *n);
        let (n, unit) = unit.unwrap_or((1, "s"));
        format!("{} {unit}", seconds / n)
    }
}

macro_rules! shown_as_numbers {
    ($($type:ty)*) => {$(
        impl Shown for $type {
            fn shown(self) -> String {
                let digits = self.to_string();
                match digits.find('.').unwrap_or(digits.len()) {
                    0..=3 => digits,
                    long => format!("{},{}", &digits[..long - 3], &digits[long - 3..]),
                }
            }
        }
    )*};
}
shown_as_numbers!(u8 u32 usize f64);

fn bytes(n: usize) -> String {
    match n {
        n if n.is_multiple_of(1 << 20) => format!("{} MiB", n >> 20),
        n if n.is_multiple_of(1 << 10) => format!("{} KiB", n >> 10),
        n => format!("{n} bytes"),
    }
}

macro_rules! values {
    ($($name:ident)*; bytes: $($size:ident)*) => {
        BTreeMap::from([
            $((stringify!($name), is::$name.shown()),)*
            $((stringify!($size), bytes(is::$size)),)*
        ])
    };
}

/// Every public constant, as the docs write it.
fn constants() -> BTreeMap<&'static str, String> {
    values!(
        PREFIX REDIS_URL QUEUE CONCURRENCY TASK_TIMEOUT MAX_RETRY RETRY_DELAY_CAP RETRY_JITTER LEASE HEARTBEAT CLOCK_SKEW
        SCAN MAX_LOST MAX_PRIORITY PRIORITY_HEAD_START SHUTDOWN_GRACE CANCEL_GRACE CONNECT_TIMEOUT COMMAND_TIMEOUT
        TCP_KEEPALIVE TCP_USER_TIMEOUT PUT_OFF MAX_UNDECODABLE MAX_DEPTH ARCHIVE_TASKS ARCHIVE_AGE KEPT_MEMORY SWEEP
        HOOKS_AT_ONCE HOOK_GRACE HOOK_LAPSE HOOK_PAUSE_CAP HOOK_TIMEOUT KEEP_FOR_HOOKS EVENTS;
        bytes: MAX_PAYLOAD MAX_ERROR MAX_RESULT MAX_HEADERS MAX_NAME
    )
}

#[test]
fn the_table_in_the_architecture_is_right_and_whole() {
    let source = text("src/defaults.rs");
    let public = source
        .lines()
        .filter_map(|line| line.strip_prefix("pub const "));
    let mut public: Vec<_> = public.map(|rest| rest.split(':').next().unwrap()).collect();
    public.sort_unstable();
    let constants = constants();
    assert_eq!(constants.keys().copied().collect::<Vec<_>>(), public);

    let architecture = text("ARCHITECTURE.md");
    let table = rows(section(&architecture, "## Defaults"));
    let written: BTreeMap<_, _> = table
        .iter()
        .map(|row| (quoted(row[2])[0], row[1].to_owned()))
        .collect();
    assert_eq!(written.len(), table.len(), "each once");
    assert_eq!(written, constants);
}

/// Options whose constants are not called like them.
const OPTIONS: [(&str, &str); 8] = [
    ("cap", "RETRY_DELAY_CAP"),
    ("jitter", "RETRY_JITTER"),
    ("max_lost_leases", "MAX_LOST"),
    ("queues", "QUEUE"),
    ("redis", "REDIS_URL"),
    ("scan_interval", "SCAN"),
    ("sweep_interval", "SWEEP"),
    ("timeout", "TASK_TIMEOUT"),
];

/// Constants that are no option's default.
const NO_OPTION: [&str; 15] = [
    "EVENTS",
    "HOOKS_AT_ONCE",
    "HOOK_GRACE",
    "HOOK_LAPSE",
    "HOOK_PAUSE_CAP",
    "HOOK_TIMEOUT",
    "MAX_DEPTH",
    "MAX_ERROR",
    "MAX_HEADERS",
    "MAX_NAME",
    "MAX_PRIORITY",
    "MAX_RESULT",
    "MAX_UNDECODABLE",
    "PRIORITY_HEAD_START",
    "PUT_OFF",
];

/// What the doc comments say after `Default: `, with the function that they are on.
fn documented() -> Vec<(String, String)> {
    let mut found = Vec::new();
    for path in below("src", "rs") {
        let mut comment = String::new();
        for line in text(&path).lines().map(str::trim) {
            if let Some(words) = line.strip_prefix("///") {
                comment += words;
                continue;
            }
            if let (Some((_, value)), Some((_, name))) =
                (comment.split_once("Default: "), line.split_once("fn "))
            {
                let name = name.split(['(', '<']).next().unwrap();
                found.push((name.to_owned(), value.to_owned()));
            }
            comment.clear();
        }
    }
    found
}

#[test]
fn doc_comments_name_the_defaults_of_the_code() {
    assert_eq!(
        is::HEARTBEAT * 3,
        is::LEASE,
        "a third of the lease, they say"
    );
    let mut constants = constants();
    let archive = constants.remove("ARCHIVE_TASKS").unwrap() + " tasks and ";
    let archive = archive + &constants.remove("ARCHIVE_AGE").unwrap();
    constants.insert("ARCHIVE_LIMITS", archive);
    constants.insert("HEARTBEAT", "a third of the lease".into());
    let mut left: BTreeSet<_> = constants.keys().copied().collect();
    for (option, said) in documented() {
        let other = OPTIONS.iter().find(|(name, _)| *name == option);
        let name = other.map_or(option.to_uppercase(), |(_, constant)| {
            (*constant).to_owned()
        });
        if let Some(value) = constants.get(&*name) {
            let rest = said.strip_prefix(value);
            let rest = rest.unwrap_or_else(|| panic!("{option}: {said:?}, not {value:?}"));
            assert!(
                rest.is_empty() || rest.starts_with(['.', ',', ' ']),
                "{option}: {said}"
            );
            left.remove(&*name);
        }
    }
    let left: Vec<_> = left.into_iter().collect();
    assert_eq!(left, NO_OPTION, "without a doc comment that names them");
}
