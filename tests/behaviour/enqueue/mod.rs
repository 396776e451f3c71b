//! What a client writes.

mod existing;
mod forms;
mod joined;
mod many;
mod record;
mod refused;
