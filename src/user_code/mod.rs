//! Code and values of the program that uses windlass: they may panic wherever they are touched,
//! and their errors may say anything. What calls, shows or drops them goes through here, so that a
//! handler's mistake never ends the worker.
//!
//! Uses nothing else of windlass but its limits, so that the router and the server can both use it.

mod catch;
mod contained;
mod error_text;
mod limited_text;
mod panic_hook;

pub(crate) use catch::{Panicked, catch};
pub(crate) use contained::Contained;
pub(crate) use error_text::{chain, error_text};
pub(crate) use limited_text::truncate;
pub(crate) use panic_hook::install as install_panic_hook;
