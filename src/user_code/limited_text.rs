use std::fmt::{self, Write};

/// As much of a text as fits into this many bytes and ends between two characters.
pub(crate) fn truncate(text: &str, max: usize) -> &str {
    let mut end = text.len().min(max);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

/// A text that takes what fits, and refuses the rest.
pub(super) struct LimitedText {
    text: String,
    max: usize,
}

impl LimitedText {
    pub(super) fn new(max: usize) -> Self {
        Self {
            text: String::new(),
            max,
        }
    }
}

impl Write for LimitedText {
    fn write_str(&mut self, more: &str) -> fmt::Result {
        let fits = truncate(more, self.max - self.text.len());
        self.text.push_str(fits);
        match fits.len() == more.len() {
            true => Ok(()),
            false => Err(fmt::Error),
        }
    }
}

impl From<LimitedText> for String {
    fn from(limited: LimitedText) -> Self {
        limited.text
    }
}
