//! What the library logs, kept for the test to read.

use std::io::{self, Write};
use std::sync::{Arc, Mutex};

use tracing::Subscriber;
use tracing_subscriber::fmt::MakeWriter;

/// The lines that were logged. Clones share them.
#[derive(Clone, Default)]
pub struct Log(Arc<Mutex<Vec<u8>>>);

impl Log {
    /// A subscriber that writes here what an operator sees by default: one line an event.
    pub fn subscriber(&self) -> impl Subscriber + Send + Sync + use<> {
        tracing_subscriber::fmt()
            .with_ansi(false)
            .with_max_level(tracing::Level::INFO)
            .with_writer(self.clone())
            .finish()
    }

    pub fn lines(&self) -> Vec<String> {
        let text = self.0.lock().unwrap();
        String::from_utf8_lossy(&text)
            .lines()
            .map(str::to_owned)
            .collect()
    }

    /// How many lines hold this text.
    pub fn count(&self, text: &str) -> usize {
        self.lines()
            .iter()
            .filter(|line| line.contains(text))
            .count()
    }
}

impl Write for Log {
    fn write(&mut self, text: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(text);
        Ok(text.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl MakeWriter<'_> for Log {
    type Writer = Self;

    fn make_writer(&self) -> Self {
        self.clone()
    }
}
