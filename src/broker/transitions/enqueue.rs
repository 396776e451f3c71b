use std::sync::LazyLock;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use redis::{FromRedisValue, ParsingError, Value};

use crate::broker::connection::{BrokerError, Query};
use crate::broker::keys::Queue;
use crate::broker::reply::Text;
use crate::broker::script::{Call, Script};
use crate::broker::transitions::record::HEADER;
use crate::broker::transitions::span::{delay_ms, whole_ms};
use crate::broker::transitions::weigh::weigh;
use crate::defaults;
pub(crate) use crate::task::EnqueueItem;
use crate::task::{Due, RetryPolicy, TaskOptions, Timeout, Unique};

static PLAIN: LazyLock<Script> =
    LazyLock::new(|| Script::new("enqueue", include_str!("../../../lua/enqueue.lua")));

static WITH_OPTIONS: LazyLock<Script> = LazyLock::new(|| {
    let text = include_str!("../../../lua/enqueue_with_options.lua");
    Script::new("enqueue_with_options", text)
});

/// What became of one task of an enqueue call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum EnqueueAnswer {
    New,
    /// Its id exists.
    Exists,
    /// Another task, the holder, has its lock.
    Duplicate {
        holder: String,
    },
    /// The holder became this task, but for its id.
    Replaced {
        holder: String,
    },
}

/// How many of the items one call of [`enqueue`] carries: bounded by count and bytes, and at least one.
pub(crate) fn batch_len<'a>(items: impl Iterator<Item = &'a EnqueueItem>) -> usize {
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

/// new → pending or scheduled. The caller bounds the batch.
pub(crate) async fn enqueue<'a>(
    redis: &impl Query,
    queue: &Queue,
    items: impl ExactSizeIterator<Item = &'a EnqueueItem> + Clone,
) -> Result<Vec<EnqueueAnswer>, BrokerError> {
    let count = items.len();
    // All through one script, so that their order stays.
    let are_plain = items.clone().all(|item| is_plain(&item.options));
    let script = if are_plain { &*PLAIN } else { &*WITH_OPTIONS };
    let mut call = script.on(&queue.base);
    for item in items {
        call.arg(&item.id);
        if !are_plain {
            add_options(&mut call, item);
        }
        add_record(&mut call, item);
    }
    match call.read_each(redis, count).await {
        Err(BrokerError::OutOfMemory { source, .. }) => {
            // Only to say it: where it cannot be seen, the error is what it was.
            let queue_has = Box::pin(weigh(redis, queue)).await.ok();
            Err(BrokerError::OutOfMemory {
                queue_has: queue_has.map(|has| has.to_string()),
                source,
            })
        }
        answered => answered,
    }
}

/// Whether a script needs to know nothing of a task but its id and its record, as of most.
fn is_plain(options: &TaskOptions) -> bool {
    options.id.is_none()
        && matches!(options.due, Due::Now)
        && options.priority == 0
        && options.deadline.is_none()
        && options.start_before.is_none()
        && options.unique.is_none()
}

/// What `enqueue_with_options` needs to know of a task beside its record.
fn add_options(call: &mut Call<'_>, item: &EnqueueItem) {
    let options = &item.options;
    if is_plain(options) {
        call.arg(0);
        return;
    }
    let deadline = [options.deadline, options.start_before]
        .into_iter()
        .flatten()
        .min();
    let unique = options.unique.as_ref();
    call.arg(8)
        .arg(u8::from(options.id.is_some()))
        .arg(match options.due {
            Due::Now => String::new(),
            Due::After(delay) => format!("+{}", delay_ms(delay)),
            Due::At(time) => unix_ms(time).to_string(),
        })
        .arg(options.priority)
        .arg(deadline.map_or(String::new(), |time| unix_ms(time).to_string()))
        .arg(unique.map_or("", Unique::mode))
        .arg(item.lock.as_deref().unwrap_or_default())
        .arg(ms_or_empty(unique.and_then(Unique::lock_time)))
        .arg(ms_or_empty(unique.and_then(Unique::longest_wait)));
}

/// The record's fields and values; what has its default is left out.
fn add_record(call: &mut Call<'_>, item: &EnqueueItem) {
    let options = &item.options;
    let timeout = options
        .timeout
        .filter(|&t| t != Timeout::After(defaults::TASK_TIMEOUT));
    let timeout = timeout.map(|timeout| match timeout {
        Timeout::After(timeout) => timeout.as_millis(),
        Timeout::Never => 0,
    });
    let rare = [
        (
            "max_retry",
            options
                .max_retry
                .filter(|&n| n != defaults::MAX_RETRY)
                .map(|n| n.to_string()),
        ),
        ("timeout", timeout.map(|ms| ms.to_string())),
        (
            "priority",
            (options.priority != 0).then(|| options.priority.to_string()),
        ),
        (
            "policy",
            options.policy.as_ref().map(RetryPolicy::to_string),
        ),
        (
            "deadline",
            options.deadline.map(|time| unix_ms(time).to_string()),
        ),
        (
            "start_before",
            options.start_before.map(|time| unix_ms(time).to_string()),
        ),
        (
            "retention",
            (!options.retention.is_zero()).then(|| options.retention.as_millis().to_string()),
        ),
    ];
    let fields =
        2 + rare.iter().filter(|(_, value)| value.is_some()).count() + options.headers.len();
    call.arg(2 * fields)
        .arg("kind")
        .arg(&item.kind)
        .arg("payload")
        .arg(&item.payload);
    for (field, value) in rare {
        if let Some(value) = value {
            call.arg(field).arg(value);
        }
    }
    for (name, value) in &options.headers {
        call.arg(format!("{HEADER}{name}")).arg(value);
    }
}

fn unix_ms(time: SystemTime) -> u128 {
    whole_ms(time.duration_since(UNIX_EPOCH).unwrap_or_default())
}

fn ms_or_empty(span: Option<Duration>) -> String {
    span.map_or(String::new(), |span| span.as_millis().to_string())
}

impl FromRedisValue for EnqueueAnswer {
    fn from_redis_value(reply: Value) -> Result<Self, ParsingError> {
        match reply {
            Value::Int(1) => Ok(Self::New),
            Value::Int(0) => Ok(Self::Exists),
            reply => match FromRedisValue::from_redis_value(reply)? {
                (-1, Text(holder)) => Ok(Self::Duplicate { holder }),
                (2, Text(holder)) => Ok(Self::Replaced { holder }),
                _ => Err("no word for an enqueue".into()),
            },
        }
    }
}
