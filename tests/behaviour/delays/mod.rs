//! Tasks that are for later: never early, and soon.

mod due;
mod longer_than_lease;
