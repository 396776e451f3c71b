use redis::Value;

/// A reply that is taken apart from front to back. Each step answers `None` where the reply does not
/// have the wanted shape, which its script's function turns into an error that names the script.
pub(super) struct Parts(std::vec::IntoIter<Value>);

impl Parts {
    pub(super) fn of(reply: Value) -> Option<Self> {
        match reply {
            Value::Array(values) => Some(Self(values.into_iter())),
            _ => None,
        }
    }

    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    pub(super) fn next(&mut self) -> Option<Value> {
        self.0.next()
    }

    pub(super) fn integer(&mut self) -> Option<i64> {
        match self.0.next()? {
            Value::Int(n) => Some(n),
            _ => None,
        }
    }

    pub(super) fn bytes(&mut self) -> Option<Vec<u8>> {
        match self.0.next()? {
            Value::BulkString(bytes) => Some(bytes),
            _ => None,
        }
    }

    /// Text that windlass wrote itself, or that is only shown.
    pub(super) fn text(&mut self) -> Option<String> {
        let bytes = self.bytes()?;
        Some(
            String::from_utf8(bytes)
                .unwrap_or_else(|e| String::from_utf8_lossy(e.as_bytes()).into_owned()),
        )
    }

    /// A number in decimal, or `None` inside where the text is empty.
    pub(super) fn number<T: std::str::FromStr>(&mut self) -> Option<Option<T>> {
        let text = self.text()?;
        if text.is_empty() {
            return Some(None);
        }
        text.parse().ok().map(Some)
    }

    pub(super) fn parts(&mut self) -> Option<Parts> {
        Self::of(self.0.next()?)
    }

    /// All that is left, as texts.
    pub(super) fn rest(mut self) -> Option<Vec<String>> {
        (0..self.len()).map(|_| self.text()).collect()
    }

    pub(super) fn texts(&mut self) -> Option<Vec<String>> {
        self.parts()?.rest()
    }
}
