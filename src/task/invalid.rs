use std::error::Error as StdError;

use thiserror::Error;

use crate::defaults::{MAX_DEPTH, MAX_HEADERS, MAX_PRIORITY};
use crate::task::name::NameError;
use crate::task::retry_policy::PolicyProblem;

/// A payload that cannot be encoded or decoded.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum PayloadError {
    /// Serializing the value failed.
    #[error("the payload could not be encoded as MessagePack")]
    Encode(#[source] Box<dyn StdError + Send + Sync>),
    /// The value can be serialized, but not deserialized again: no worker could run the task. So it is
    /// with a `u128` in a tagged, untagged or flattened type.
    #[error("a `{type_name}` can be encoded, but then not be decoded again")]
    #[non_exhaustive]
    Unreadable {
        /// The task's type.
        type_name: &'static str,
        /// Why it could not be decoded.
        source: Box<PayloadError>,
    },
    /// The bytes are not the MessagePack of the wanted type.
    #[error("the payload could not be decoded")]
    Decode(#[source] Box<dyn StdError + Send + Sync>),
    /// Bytes are left over after the value.
    #[error("the payload has {0} bytes after its end")]
    Trailing(usize),
    /// It is nested deeper than 64 levels.
    #[error("the payload is nested deeper than {MAX_DEPTH} levels: flatten it")]
    TooDeep,
    /// It is larger than the cap.
    #[error(
        "the payload has {bytes} bytes and the cap is {cap}: store it elsewhere and enqueue a reference, or raise the cap"
    )]
    #[non_exhaustive]
    TooLarge {
        /// Its size in bytes.
        bytes: usize,
        /// The cap in bytes.
        cap: usize,
    },
}

/// A task that was refused before anything was sent to Redis.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum InvalidTask {
    /// Its queue, kind or id cannot be used.
    #[error(transparent)]
    Name(#[from] NameError),
    /// Its payload cannot be stored.
    #[error(transparent)]
    Payload(#[from] PayloadError),
    /// Its priority is above 9.
    #[error("priority {0} is above {MAX_PRIORITY}: use 0 to {MAX_PRIORITY}")]
    Priority(u8),
    /// Its timeout is zero or too long to be stored.
    #[error(
        "timeout {0:?} cannot be used: give at least 1 ms and at most 100 years, or no_timeout()"
    )]
    Timeout(std::time::Duration),
    /// A time or span is out of the range that can be stored.
    #[error("the {0} cannot be used: give one between 1970 and 100 years from now")]
    Time(&'static str),
    /// Its retry policy makes no sense.
    #[error("the retry policy cannot be used: {0}")]
    Policy(#[from] PolicyProblem),
    /// Its lock makes no sense.
    #[error("a lock for a time must last at least 1 ms")]
    ZeroLock,
    /// Its lock is shared across kinds, and its key is made of kind and payload.
    #[error("a lock across kinds needs a key: give it one with key()")]
    SharedLock,
    /// Its headers are too large.
    #[error(
        "the headers have {0} bytes and the cap is {MAX_HEADERS}: put large values into the payload"
    )]
    Headers(usize),
}
