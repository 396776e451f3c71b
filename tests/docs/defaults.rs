//! Defaults are written once, in src/defaults.rs; what the docs say of them is compared with it.

use std::collections::BTreeMap;
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
                match digits.len() {
                    0..=3 => digits,
                    long => format!("{},{}", &digits[..long - 3], &digits[long - 3..]),
                }
            }
        }
    )*};
}
shown_as_numbers!(u8 u32 usize);

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
        PREFIX REDIS_URL QUEUE CONCURRENCY TASK_TIMEOUT MAX_RETRY RETRY_DELAY_CAP LEASE HEARTBEAT CLOCK_SKEW
        SCAN MAX_LOST MAX_PRIORITY SHUTDOWN_GRACE CANCEL_GRACE CONNECT_TIMEOUT COMMAND_TIMEOUT
        TCP_KEEPALIVE TCP_USER_TIMEOUT         UNKNOWN_KIND_DELAY MAX_DEPTH ARCHIVE_TASKS ARCHIVE_AGE SWEEP HOOKS_AT_ONCE HOOK_TIMEOUT
        HOOK_TRIES EVENTS;
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

/// What the doc comments say after `Default: `, with the function that they stand on.
fn documented() -> Vec<(String, String)> {
    let mut found = Vec::new();
    for path in below("src", "rs") {
        let source = text(&path);
        let mut comment = String::new();
        for line in source.lines().map(str::trim) {
            if let Some(words) = line.strip_prefix("///") {
                comment += words;
                continue;
            }
            if let Some((_, said)) = comment.split_once("Default: ") {
                let value = said.split_once(". ").map_or(said, |(value, _)| value);
                let name = line
                    .split("fn ")
                    .nth(1)
                    .and_then(|rest| rest.split(['(', '<']).next());
                let file = path.file_stem().unwrap().to_string_lossy();
                let folder = path
                    .parent()
                    .unwrap()
                    .file_name()
                    .unwrap()
                    .to_string_lossy();
                let place = format!("{folder}/{file}::{}", name.unwrap_or(line));
                found.push((place, value.trim_end_matches('.').to_owned()));
            }
            comment.clear();
        }
    }
    found.sort();
    found
}

#[test]
fn doc_comments_name_the_defaults_of_the_code() {
    assert_eq!(is::HEARTBEAT * 3, is::LEASE);
    let archive = format!(
        "{} tasks and {}",
        is::ARCHIVE_TASKS.shown(),
        is::ARCHIVE_AGE.shown()
    );
    let mut expected = vec![
        ("client/builder::max_payload", bytes(is::MAX_PAYLOAD)),
        ("client/builder::redis", is::REDIS_URL.shown()),
        (
            "connection/config::command_timeout",
            is::COMMAND_TIMEOUT.shown(),
        ),
        (
            "connection/config::connect_timeout",
            is::CONNECT_TIMEOUT.shown(),
        ),
        ("connection/config::prefix", is::PREFIX.shown()),
        (
            "connection/config::tcp_keepalive",
            is::TCP_KEEPALIVE.shown(),
        ),
        (
            "connection/config::tcp_user_timeout",
            is::TCP_USER_TIMEOUT.shown(),
        ),
        ("handlers/extract::required_states", "none".into()),
        ("setup/builder::archive_limits", archive),
        ("setup/builder::cancel_grace", is::CANCEL_GRACE.shown()),
        ("setup/builder::clock_skew", is::CLOCK_SKEW.shown()),
        ("setup/builder::concurrency", is::CONCURRENCY.shown()),
        ("setup/builder::heartbeat", "a third of the lease".into()),
        ("setup/builder::is_failure", "every error does".into()),
        ("setup/builder::lease", is::LEASE.shown()),
        ("setup/builder::lost_lease_delay", "zero, not at all".into()),
        (
            "setup/builder::lost_leases",
            "it counts as a failed attempt".into(),
        ),
        ("setup/builder::max_lost_leases", is::MAX_LOST.shown()),
        ("setup/builder::panic_places", "yes".into()),
        (
            "setup/builder::queues",
            format!("{} with weight 1", is::QUEUE.shown()),
        ),
        ("setup/builder::redis", is::REDIS_URL.shown()),
        (
            "setup/builder::retry_delay",
            "[`default_retry_delay`]".into(),
        ),
        ("setup/builder::scan_interval", is::SCAN.shown()),
        ("setup/builder::shutdown_grace", is::SHUTDOWN_GRACE.shown()),
        ("setup/builder::strict_order", "by weight".into()),
        ("setup/builder::sweep_interval", is::SWEEP.shown()),
        ("setup/builder::unknown_kind", "put them off".into()),
        ("task/new_task::deadline", "none".into()),
        (
            "task/new_task::id",
            "a generated one of 26 characters".into(),
        ),
        ("task/new_task::max_retry", is::MAX_RETRY.shown()),
        ("task/new_task::priority", "0".into()),
        ("task/new_task::queue", is::QUEUE.shown()),
        ("task/new_task::retention", "zero, not at all".into()),
        ("task/new_task::retry_policy", "what the server says".into()),
        ("task/new_task::start_before", "none".into()),
        ("task/new_task::timeout", is::TASK_TIMEOUT.shown()),
        ("task/new_task::unique", "none".into()),
        ("task/retry_policy::cap", is::RETRY_DELAY_CAP.shown()),
        ("task/retry_policy::jitter", "0".into()),
        ("task/unique::at_most", "no limit".into()),
        ("task/unique::max_wait", "no limit".into()),
    ]
    .into_iter()
    .map(|(place, value)| (place.to_owned(), value))
    .collect::<Vec<_>>();
    expected.sort();
    assert_eq!(documented(), expected);
}
