use std::time::Duration;

use crate::defaults;

/// A task's record, as a claim reads it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Record {
    pub(crate) kind: String,
    pub(crate) payload: Vec<u8>,
    pub(crate) retried: u32,
    pub(crate) max_retry: u32,
    /// `None`: no timeout.
    pub(crate) timeout: Option<Duration>,
}

/// A record whose fields make no sense.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the record's field {0} cannot be read")]
pub(crate) struct Malformed(pub(crate) &'static str);

impl Record {
    /// From the fields and values of the task's hash; fields of later versions are passed over.
    pub(super) fn parse(
        fields: impl Iterator<Item = (Vec<u8>, Vec<u8>)>,
    ) -> Result<Self, Malformed> {
        let mut record = Self {
            kind: String::new(),
            payload: Vec::new(),
            retried: 0,
            max_retry: defaults::MAX_RETRY,
            timeout: Some(defaults::TASK_TIMEOUT),
        };
        for (field, value) in fields {
            match field.as_slice() {
                b"kind" => record.kind = String::from_utf8(value).map_err(|_| Malformed("kind"))?,
                b"payload" => record.payload = value,
                b"retried" => record.retried = number(&value, "retried")?,
                b"max_retry" => record.max_retry = number(&value, "max_retry")?,
                b"timeout" => {
                    let ms = number(&value, "timeout")?;
                    record.timeout = (ms > 0).then(|| Duration::from_millis(ms));
                }
                _ => {}
            }
        }
        Ok(record)
    }
}

fn number<T: std::str::FromStr>(value: &[u8], field: &'static str) -> Result<T, Malformed> {
    std::str::from_utf8(value)
        .ok()
        .and_then(|text| text.parse().ok())
        .ok_or(Malformed(field))
}
