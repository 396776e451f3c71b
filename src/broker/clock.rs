/// The time that scripts are given: empty, which means Redis' own clock.
#[cfg(not(test))]
pub(super) fn time() -> &'static str {
    ""
}

#[cfg(test)]
thread_local! {
    /// The time in µs since the epoch that a test gives to the scripts that this thread calls.
    pub(crate) static NOW: std::cell::Cell<Option<u64>> = const { std::cell::Cell::new(None) };
}

#[cfg(test)]
pub(super) fn time() -> String {
    NOW.get().map_or(String::new(), |us| us.to_string())
}
