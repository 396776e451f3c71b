use crate::task::codec::Encoded;
use crate::task::new_task::NewTask;

/// A task whose payload is bytes that windlass does not look into.
///
/// Producers use it for payloads that are not MessagePack; a handler that takes it gets the bytes
/// exactly as they were enqueued.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct RawTask {
    /// The kind, such as `email:send`.
    pub kind: String,
    /// The payload's bytes.
    pub payload: Vec<u8>,
}

impl RawTask {
    /// A task of this kind that carries these bytes.
    pub fn new(kind: impl Into<String>, payload: impl Into<Vec<u8>>) -> Self {
        Self {
            kind: kind.into(),
            payload: payload.into(),
        }
    }
}

impl From<RawTask> for NewTask {
    fn from(task: RawTask) -> Self {
        NewTask::with_payload(task.kind, Ok(Encoded::opaque(task.payload)))
    }
}
