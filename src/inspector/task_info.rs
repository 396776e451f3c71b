use std::collections::BTreeMap;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::broker::operator::Look;
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
    /// (active), when it may be removed (completed); or when it died (archived), or became pending.
    pub at: SystemTime,
    /// Its kind.
    pub kind: String,
    /// Its payload, as it was enqueued.
    pub payload: Vec<u8>,
    /// How many of its tries have failed.
    pub retried: u32,
    /// The server that runs it.
    pub server: Option<String>,
    /// Every field of its record but the payload, as text.
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
        let since = match state {
            TaskState::Pending => Duration::from_micros(score),
            _ => Duration::from_millis(score),
        };
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
            retried: fields
                .get("retried")
                .and_then(|n| n.parse().ok())
                .unwrap_or(0),
            server: holder.map(|(_, server)| server.to_owned()),
            payload,
            fields,
        })
    }
}
