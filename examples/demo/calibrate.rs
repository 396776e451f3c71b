//! How hard to compress, so that the demo takes about as long on any machine.

use std::fs;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};

use crate::input::Input;
use crate::settings::{WORK, concurrency};
use crate::work::compress;

/// How long one try at a level takes.
const TRY: Duration = Duration::from_secs(1);

pub struct Effort {
    pub level: u32,
    /// How often each file is compressed, on average.
    pub rounds: f64,
}

impl Effort {
    /// The rounds of one file: whole numbers whose mean is the wanted one.
    pub fn rounds_of(&self, index: usize) -> u32 {
        let until = |index: usize| (index as f64 * self.rounds) as u64;
        (until(index + 1) - until(index)) as u32
    }
}

/// The highest level at which one round is not too long already, and as many rounds as it takes.
pub fn measure(input: &Input) -> Effort {
    for level in [9, 6] {
        let rounds = WORK.as_secs_f64() / one_round(input, level);
        if rounds >= 1.0 {
            return Effort { level, rounds };
        }
    }
    let rounds = WORK.as_secs_f64() / one_round(input, 1);
    Effort {
        level: 1,
        rounds: rounds.max(1.0),
    }
}

/// How long one round over all files takes, in seconds, by trying some.
fn one_round(input: &Input, level: u32) -> f64 {
    let next = AtomicUsize::new(0);
    let start = Instant::now();
    let work = || {
        let mut bytes = 0;
        while start.elapsed() < TRY {
            let index = next.fetch_add(1, Relaxed) % input.files.len();
            let content = fs::read(&input.files[index]).unwrap_or_default();
            let _ = compress(&content, level);
            bytes += content.len();
        }
        // For itself, because others may already wait for one that got a large file.
        bytes as f64 / start.elapsed().as_secs_f64()
    };
    let bytes_per_second: f64 = thread::scope(|scope| {
        // As many as the workers will have, so that other programs get no larger share now.
        let threads = 2 * concurrency();
        let threads: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        threads.into_iter().flat_map(|thread| thread.join()).sum()
    });
    input.bytes as f64 / bytes_per_second.max(1.0)
}
