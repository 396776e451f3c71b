//! How a server is made: the builder with its options, their check, and what `build` does before there is
//! a server. It makes all the rest, so nothing imports it.

mod build;
pub(crate) mod builder;
mod check;
pub(crate) mod error;
