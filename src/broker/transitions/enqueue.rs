use std::sync::LazyLock;
use std::time::UNIX_EPOCH;

use super::super::reply::Parts;
use super::super::script::{BASE, Script};
use super::super::{BrokerError, Query, Queue};
use crate::defaults;
use crate::task::{Due, TaskOptions, Timeout};

static SCRIPT: LazyLock<Script> =
    LazyLock::new(|| Script::new("enqueue", include_str!("../../../lua/enqueue.lua"), &[BASE]));

/// A checked task on its way to Redis.
#[derive(Debug)]
pub(crate) struct EnqueueItem {
    pub(crate) id: String,
    pub(crate) kind: String,
    pub(crate) payload: Vec<u8>,
    pub(crate) options: TaskOptions,
}

impl EnqueueItem {
    /// About how many bytes it adds to a script call.
    pub(crate) fn size(&self) -> usize {
        self.payload.len() + self.kind.len() + self.id.len() + 64
    }
}

/// new → pending or scheduled. Answers for each task whether it was enqueued: `false` means that its
/// id exists. The caller bounds the batch.
pub(crate) async fn enqueue<'a>(
    redis: &impl Query,
    queue: &Queue,
    items: impl ExactSizeIterator<Item = &'a EnqueueItem>,
) -> Result<Vec<bool>, BrokerError> {
    let count = items.len();
    let mut call = SCRIPT.on(&queue.base);
    for item in items {
        let options = &item.options;
        let due = match options.due {
            Due::Now => String::new(),
            Due::After(delay) => format!("+{}", delay.as_millis()),
            Due::At(time) => time
                .duration_since(UNIX_EPOCH)
                .map_or(String::new(), |since| since.as_millis().to_string()),
        };
        let max_retry = options.max_retry.filter(|&n| n != defaults::MAX_RETRY);
        let timeout = options
            .timeout
            .filter(|&t| t != Timeout::After(defaults::TASK_TIMEOUT));
        let priority = Some(options.priority).filter(|&p| p != 0);
        let fields = 2
            + usize::from(max_retry.is_some())
            + usize::from(timeout.is_some())
            + usize::from(priority.is_some());
        call.arg(&item.id)
            .arg(u8::from(options.id.is_some()))
            .arg(due)
            .arg(options.priority)
            .arg(2 * fields)
            .arg("kind")
            .arg(&item.kind)
            .arg("payload")
            .arg(&item.payload);
        if let Some(n) = max_retry {
            call.arg("max_retry").arg(n);
        }
        if let Some(timeout) = timeout {
            call.arg("timeout").arg(match timeout {
                Timeout::After(timeout) => timeout.as_millis() as u64,
                Timeout::Never => 0,
            });
        }
        if let Some(priority) = priority {
            call.arg("priority").arg(priority);
        }
    }
    let mut answers = Parts::of(call.run(redis).await?)
        .filter(|answers| answers.len() == count)
        .ok_or_else(|| SCRIPT.unexpected())?;
    (0..count)
        .map(|_| {
            answers
                .integer()
                .map(|n| n == 1)
                .ok_or_else(|| SCRIPT.unexpected())
        })
        .collect()
}
