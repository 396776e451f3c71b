//! What is shown while it runs: a progress bar, or plain lines where there is no terminal.

use std::io::{IsTerminal, stderr};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};

use crate::store::Counts;

/// Between two plain lines.
const PAUSE: Duration = Duration::from_secs(2);

pub struct Screen {
    start: Instant,
    total: usize,
    bar: Option<ProgressBar>,
    /// When the last plain line was printed.
    printed: Instant,
}

impl Screen {
    pub fn new(bar: bool, total: usize) -> anyhow::Result<Self> {
        let now = Instant::now();
        let bar = if bar && stderr().is_terminal() {
            let style = ProgressStyle::with_template(
                "{elapsed:>4} {bar:24} {pos}/{len} {percent:>3} % {msg}",
            )?;
            Some(ProgressBar::new(total as u64).with_style(style))
        } else {
            None
        };
        Ok(Self {
            start: now,
            total,
            bar,
            printed: now,
        })
    }

    /// A line that stays.
    pub fn say(&self, text: &str) {
        let line = format!("{:>4.1} s  {text}", self.start.elapsed().as_secs_f64());
        match &self.bar {
            Some(bar) => bar.suspend(|| println!("{line}")),
            None => println!("{line}"),
        }
    }

    pub fn update(&mut self, done: usize, counts: &Counts) {
        let rate = done as f64 / self.start.elapsed().as_secs_f64().max(0.1);
        let Counts {
            pending,
            active,
            retry,
            archived,
            retries,
            ..
        } = counts;
        let message = format!(
            "{rate:.0}/s; pending {pending}, active {active}, retry {retry}, archived {archived}; retries {retries}"
        );
        if let Some(bar) = &self.bar {
            bar.set_position(done as u64);
            bar.set_message(message);
        } else if self.printed.elapsed() >= PAUSE {
            self.printed = Instant::now();
            self.say(&format!("{done}/{} done, {message}", self.total));
        }
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}
