//! Tries that fail: how they are counted, what is kept of them, when the next one is.

mod attempts;
mod delay;
mod error_text;
mod is_failure;
mod lost_leases;
mod policy;
