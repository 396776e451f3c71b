//! Settings, addresses and Redis servers that are refused: each by name, with what to do, in time.

mod builder;
mod keys;
mod no_redis;
mod urls;

use std::error::Error;

/// An error's message with those of its sources, as an operator sees it.
fn whole(error: &dyn Error) -> String {
    let sources = std::iter::successors(error.source(), |error| (**error).source());
    let sources = sources.map(|source| format!(": {source}"));
    error.to_string() + &sources.collect::<String>()
}
