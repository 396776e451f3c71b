//! What a client writes.

mod existing;
mod forms;
mod joined;
mod many;
mod names;
mod order;
mod payload;
mod record;
mod refused;
