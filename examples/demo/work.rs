//! The task, and the handler that does it.

use std::fs;
use std::io::{self, Write};
use std::thread::sleep;
use std::time::{Duration, Instant};

use flate2::Compression;
use flate2::write::DeflateEncoder;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use windlass::{NewTask, State, Task, TaskContext};

use crate::journal::{Journal, Packed};
use crate::settings::{QUEUE, SLOW};

/// A file with this first line makes its handler panic.
pub const POISON: &[u8] = b"the handler of this file panics\n";
/// A file with this first line takes long.
pub const SLEEPER: &[u8] = b"the handler of this file sleeps\n";

/// Hash a file, and compress it so often at such a level.
#[derive(Serialize, Deserialize)]
pub struct Pack {
    pub path: String,
    pub level: u32,
    pub rounds: u32,
}

impl Task for Pack {
    const KIND: &'static str = "file:pack";

    fn defaults(&self, task: NewTask) -> NewTask {
        task.queue(QUEUE)
    }
}

/// A plain function, registered with `blocking_task`, because it keeps a core busy: on the async
/// runtime it would hold up everything else. It may run twice for one file, which does no harm.
pub fn pack(
    task: Pack,
    State(journal): State<Journal>,
    context: TaskContext,
) -> Result<(), io::Error> {
    journal.started(context.id())?;
    let content = fs::read(&task.path)?;
    if content.starts_with(POISON) {
        panic!("{} is poisoned", task.path);
    }
    if content.starts_with(SLEEPER) {
        doze(&context)?;
    }
    let mut packed_bytes = 0;
    for _ in 0..task.rounds {
        // A thread cannot be ended from outside, so it looks itself whether it should go on.
        stop_if_cancelled(&context)?;
        packed_bytes = compress(&content, task.level)?;
    }
    let packed = Packed {
        sha256: sha256(&content),
        bytes: content.len() as u64,
        packed_bytes,
    };
    journal.ended(context.id(), &packed)
}

/// The size of the compressed content.
pub fn compress(content: &[u8], level: u32) -> io::Result<u64> {
    let mut encoder = DeflateEncoder::new(io::sink(), Compression::new(level));
    encoder.write_all(content)?;
    encoder.try_finish()?;
    Ok(encoder.total_out())
}

fn sha256(content: &[u8]) -> String {
    let hash = Sha256::digest(content);
    hash.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn doze(context: &TaskContext) -> io::Result<()> {
    let start = Instant::now();
    while start.elapsed() < SLOW {
        stop_if_cancelled(context)?;
        sleep(Duration::from_millis(50));
    }
    Ok(())
}

fn stop_if_cancelled(context: &TaskContext) -> io::Result<()> {
    if context.is_cancelled() {
        return Err(io::ErrorKind::Interrupted.into());
    }
    Ok(())
}
