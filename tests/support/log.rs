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

    /// How often this was to be logged: each line says how many before it were held back.
    pub fn told(&self, message: &str) -> u64 {
        let held_back = format!("held back since it was last logged: {message}");
        let lines = self.lines().into_iter();
        let lines = lines.filter(|line| line.contains(message));
        let counts = lines.map(|line| {
            let (_, count) = line.split_once("suppressed=").expect("it says how many");
            let digits = count.split(|c: char| !c.is_ascii_digit()).next();
            let suppressed: u64 = digits.unwrap_or_default().parse().expect("a number");
            suppressed + u64::from(!line.contains(&held_back))
        });
        counts.sum()
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
