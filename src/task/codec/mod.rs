//! Payloads and results as bytes: MessagePack with field names, bounded in depth on both sides.
//!
//! Some types have two forms: an `IpAddr` is `"127.0.0.1"` where a format is human-readable, and
//! four bytes where it is binary. MessagePack is binary. But in tagged, untagged and flattened types
//! serde always reads the human-readable form. So a task that cannot be read back in the binary form
//! is encoded in the human-readable one, and decoding tries both. Every other task is in the binary
//! form, because version 0.1 knows no other.

mod bounded;
mod decode;
mod encode;
mod message_pack;
#[cfg(test)]
mod tests;

pub(crate) use decode::decode;
pub(crate) use encode::{Encoded, encode, encode_task};

/// How types are encoded that have two forms.
#[derive(Debug, Clone, Copy)]
enum Form {
    Binary,
    HumanReadable,
}
