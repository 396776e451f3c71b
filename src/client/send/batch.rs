use crate::broker::EnqueueItem;
use crate::defaults;

/// How many of the items one script call carries: bounded by count and bytes, and at least one.
pub(super) fn batch_len<'a>(items: impl Iterator<Item = &'a EnqueueItem>) -> usize {
    let mut bytes = 0;
    items
        .take(defaults::ENQUEUE_TASKS)
        .take_while(|item| {
            let first = bytes == 0;
            bytes += item.size();
            first || bytes <= defaults::SCRIPT_BYTES
        })
        .count()
}
