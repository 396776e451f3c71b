//! What a server is made of before it runs: the builder, its settings, its connections.

pub(crate) mod builder;
pub(crate) mod config;
pub(crate) mod connections;
