//! Starting, steering and stopping a server: its signals, handle, heartbeat and components.

pub(crate) mod components;
#[cfg(unix)]
pub(crate) mod disposition;
pub(crate) mod error;
pub(crate) mod handle;
pub(crate) mod heartbeat;
mod observer;
pub(crate) mod report;
pub(crate) mod server;
pub(crate) mod signals;
