//! How late this machine itself is, by which a test measures how late windlass is.

use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

const STEP: Duration = Duration::from_millis(2);

/// A thread that sleeps again and again, and sees how late it wakes up.
pub struct Lag {
    stop: Sender<()>,
    worst: JoinHandle<Duration>,
}

impl Lag {
    pub fn start() -> Self {
        let (stop, stopped) = mpsc::channel();
        let worst = thread::spawn(move || {
            let mut worst = Duration::ZERO;
            loop {
                let start = Instant::now();
                match stopped.recv_timeout(STEP) {
                    Err(RecvTimeoutError::Timeout) => {
                        worst = worst.max(start.elapsed().saturating_sub(STEP));
                    }
                    _ => return worst,
                }
            }
        });
        Self { stop, worst }
    }

    /// The latest that it woke up. What takes part in a test one after the other (a server, Redis, a
    /// handler) may each have waited for so long.
    pub fn end(self) -> Duration {
        drop(self.stop);
        self.worst.join().expect("it does not panic")
    }
}
