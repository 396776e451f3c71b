//! What a task carries: its own retry policy, its type's defaults, headers.

mod defaults;
mod durations;
mod headers;
mod retry_policy;
