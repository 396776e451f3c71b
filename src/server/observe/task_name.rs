use crate::broker::Queue;

/// A task, as logs and events name it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TaskName<'a> {
    pub(crate) id: &'a str,
    pub(crate) kind: &'a str,
    pub(crate) queue: &'a Queue,
    /// The number of its attempt, from 1 on; `None` where it was waiting for one.
    pub(crate) attempt: Option<u64>,
}
