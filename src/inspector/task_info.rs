use std::collections::BTreeMap;
use std::str::FromStr;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::broker::operator::Look;
use crate::defaults::{MAX_RETRY, PRIORITY_HEAD_START, TASK_TIMEOUT};
use crate::task::TaskState;

/// One task, as it is in Redis.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct TaskInfo {
    /// Its id.
    pub id: String,
    /// Its queue.
    pub queue: String,
    /// Where it stands.
    pub state: TaskState,
    /// When something happens to it next: when it is due (scheduled, retry), when its lease expires
    /// (active), when it may be removed (completed); or when it died (archived), or became pending. A time
    /// that somebody wrote by hand and no clock can show is the nearest one that it can.
    pub at: SystemTime,
    /// Its kind.
    pub kind: String,
    /// Its payload, as it was enqueued.
    pub payload: Vec<u8>,
    /// How many of its tries have failed.
    pub retried: u32,
    /// How many may fail before it is archived.
    pub max_retry: u32,
    /// From 0 to 9: see [`NewTask::priority`](crate::NewTask::priority).
    pub priority: u8,
    /// How long an attempt may take; `None`: as long as it likes.
    pub timeout: Option<Duration>,
    /// The server that runs it.
    pub server: Option<String>,
    /// Every field of its record but the payload, as text. One that has its default is not there.
    pub fields: BTreeMap<String, String>,
}

impl TaskInfo {
    pub(super) fn new(queue: &str, id: &str, look: Look) -> Option<Self> {
        let state = match look.state.as_str() {
            "scheduled" => TaskState::Scheduled,
            "pending" => TaskState::Pending,
            "active" => TaskState::Active,
            "retry" => TaskState::Retry,
            "archived" => TaskState::Archived,
            "completed" => TaskState::Completed,
            _ => return None,
        };
        let score = u64::try_from(look.score).unwrap_or_default();
        let mut payload = Vec::new();
        let mut fields = BTreeMap::new();
        for (field, value) in look.fields {
            match field.as_str() {
                "payload" => payload = value,
                _ => {
                    fields.insert(field, String::from_utf8_lossy(&value).into_owned());
                }
            }
        }
        fn number<T: FromStr>(fields: &BTreeMap<String, String>, name: &str) -> Option<T> {
            fields.get(name)?.parse().ok()
        }
        let priority = number(&fields, "priority").unwrap_or(0);
        let since = match state {
            TaskState::Pending => {
                Duration::from_micros(score) + PRIORITY_HEAD_START * u32::from(priority)
            }
            _ => Duration::from_millis(score),
        };
        let timeout = number(&fields, "timeout").map_or(TASK_TIMEOUT, Duration::from_millis);
        let holder = look
            .lease
            .split(' ')
            .next()
            .and_then(|holder| holder.split_once('@'));
        Some(Self {
            id: id.to_owned(),
            queue: queue.to_owned(),
            state,
            at: UNIX_EPOCH.checked_add(since)?,
            kind: fields.get("kind").cloned().unwrap_or_default(),
            retried: number(&fields, "retried").unwrap_or(0),
            max_retry: number(&fields, "max_retry").unwrap_or(MAX_RETRY),
            priority,
            timeout: Some(timeout).filter(|timeout| !timeout.is_zero()),
            server: holder.map(|(_, server)| server.to_owned()),
            payload,
            fields,
        })
    }
}
