/// The task that an [`Event`](crate::server::Event) is about.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct EventTask {
    /// Its id.
    pub id: String,
    /// Its kind; empty where its record cannot be read.
    pub kind: String,
    /// Its queue.
    pub queue: String,
    /// The number of the attempt, from 1 on; `None` where there was none.
    pub attempt: Option<u64>,
}

impl EventTask {
    /// A task that was not being attempted. Set other fields on it.
    pub fn new(id: impl Into<String>, kind: impl Into<String>, queue: impl Into<String>) -> Self {
        Self {
            id: id.into(),
            kind: kind.into(),
            queue: queue.into(),
            attempt: None,
        }
    }
}
