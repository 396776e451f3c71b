//! Pieces of scripts' replies.

use redis::{FromRedisValue, ParsingError, Value};

/// Text that windlass wrote itself, or that is only shown: what is no UTF-8 in it is replaced.
pub(super) struct Text(pub(super) String);

impl FromRedisValue for Text {
    fn from_redis_value(reply: Value) -> Result<Self, ParsingError> {
        let bytes = Vec::from_redis_value(reply)?;
        Ok(Self(
            String::from_utf8(bytes).unwrap_or_else(|e| lossy(e.as_bytes())),
        ))
    }
}

/// A whole number in decimal, or none where the text is empty.
pub(super) struct Decimal(pub(super) Option<u64>);

impl FromRedisValue for Decimal {
    fn from_redis_value(reply: Value) -> Result<Self, ParsingError> {
        let Text(text) = Text::from_redis_value(reply)?;
        if text.is_empty() {
            return Ok(Self(None));
        }
        let number = text.parse();
        number.map_or_else(|_| Err("no whole number".into()), |n| Ok(Self(Some(n))))
    }
}

pub(super) fn texts(texts: Vec<Text>) -> Vec<String> {
    texts.into_iter().map(|Text(text)| text).collect()
}

pub(super) fn lossy(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}
