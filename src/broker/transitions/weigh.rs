use std::fmt;
use std::sync::LazyLock;

use crate::broker::connection::{BrokerError, Query};
use crate::broker::keys::Queue;
use crate::broker::script::Script;
use crate::broker::transitions::sweep::KeptBytes;

static SCRIPT: LazyLock<Script> =
    LazyLock::new(|| Script::new("weigh", include_str!("../../../lua/weigh.lua")));

/// How many of the oldest and of the newest tasks of a state are weighed: a few hundred µs of Redis' time.
const WEIGHED: usize = 25;

/// What a queue holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct QueueWeight {
    /// Tasks that have not ended.
    pub(crate) waiting: u64,
    /// Archived tasks.
    pub(crate) archived: u64,
    /// Completed tasks that are kept.
    pub(crate) completed: u64,
    /// Of the last two.
    pub(crate) kept: KeptBytes,
}

impl fmt::Display for QueueWeight {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mb = |bytes: u64| bytes as f64 / 1e6;
        write!(
            f,
            "{} tasks that have not ended, {} archived ones (about {:.1} MB) and {} completed ones (about {:.1} MB)",
            self.waiting,
            self.archived,
            mb(self.kept.archived),
            self.completed,
            mb(self.kept.completed),
        )
    }
}

/// Looks how much a queue holds; changes nothing.
pub(crate) async fn weigh(redis: &impl Query, queue: &Queue) -> Result<QueueWeight, BrokerError> {
    let mut call = SCRIPT.on(&queue.base);
    call.arg(WEIGHED);
    let reply = call.read(redis).await?;
    let (waiting, archived, archived_bytes, completed, completed_bytes) = reply;
    Ok(QueueWeight {
        waiting,
        archived,
        completed,
        kept: KeptBytes {
            completed: completed_bytes,
            archived: archived_bytes,
        },
    })
}
