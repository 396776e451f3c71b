use std::time::Duration;

use crate::defaults;
use crate::task::RetryPolicy;

/// A task's record, as a claim reads it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Record {
    pub(crate) kind: String,
    pub(crate) payload: Vec<u8>,
    pub(crate) retried: u32,
    pub(crate) max_retry: u32,
    /// `None`: no timeout.
    pub(crate) timeout: Option<Duration>,
    /// In ms since the epoch.
    pub(crate) deadline: Option<u64>,
    pub(crate) policy: Option<RetryPolicy>,
    pub(crate) headers: Vec<(String, String)>,
    /// How often in a row its payload could not be decoded.
    pub(crate) undecodable: u32,
    /// Has a retention: its result is kept.
    pub(crate) keeps_result: bool,
    /// Its record must be read when it completes, because it has a lock or a retention.
    pub(crate) has_end_effects: bool,
}

/// How the fields of headers begin.
pub(super) const HEADER: &str = "h:";

/// A record whose fields make no sense.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the record's field {0} cannot be read")]
pub(crate) struct Malformed(pub(crate) &'static str);

impl Record {
    /// A record whose other fields have their defaults.
    pub(crate) fn of_kind(kind: String) -> Self {
        Self {
            kind,
            payload: Vec::new(),
            retried: 0,
            max_retry: defaults::MAX_RETRY,
            timeout: Some(defaults::TASK_TIMEOUT),
            deadline: None,
            policy: None,
            headers: Vec::new(),
            undecodable: 0,
            keeps_result: false,
            has_end_effects: false,
        }
    }

    /// From the fields and values of the task's hash; fields of later versions are passed over.
    pub(super) fn parse(
        fields: impl Iterator<Item = (Vec<u8>, Vec<u8>)>,
    ) -> Result<Self, Malformed> {
        let mut record = Self::of_kind(String::new());
        for (field, value) in fields {
            match field.as_slice() {
                b"kind" => record.kind = String::from_utf8(value).map_err(|_| Malformed("kind"))?,
                b"payload" => record.payload = value,
                b"retried" => record.retried = parsed(&value, "retried")?,
                b"max_retry" => record.max_retry = parsed(&value, "max_retry")?,
                b"timeout" => {
                    let ms = parsed(&value, "timeout")?;
                    record.timeout = (ms > 0).then(|| Duration::from_millis(ms));
                }
                b"deadline" => record.deadline = Some(parsed(&value, "deadline")?),
                b"policy" => record.policy = Some(parsed(&value, "policy")?),
                b"undecodable" => record.undecodable = parsed(&value, "undecodable")?,
                b"unique" => record.has_end_effects = true,
                b"retention" => {
                    record.keeps_result = true;
                    record.has_end_effects = true;
                }
                field => {
                    if let Some(name) = field.strip_prefix(HEADER.as_bytes()) {
                        record.headers.push((lossy(name), lossy(&value)));
                    }
                }
            }
        }
        Ok(record)
    }
}

fn lossy(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn parsed<T: std::str::FromStr>(value: &[u8], field: &'static str) -> Result<T, Malformed> {
    std::str::from_utf8(value)
        .ok()
        .and_then(|text| text.parse().ok())
        .ok_or(Malformed(field))
}
