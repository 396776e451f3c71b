//! How tasks get to Redis: single ones that happen at the same time join into one call, lists go in
//! calls of their own. Knows what a task became, and nothing of how it was made.

mod bulk;
mod joiner;
mod line;
mod listed;

pub(super) use bulk::Bulk;
pub(super) use joiner::Joiner;
