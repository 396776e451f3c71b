//! What a task carries: its type's defaults, spans, headers.

mod defaults;
mod durations;
mod from_fields;
mod headers;
