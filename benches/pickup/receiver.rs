use std::io::Read;
use std::process::Stdio;
use std::time::Duration;

use tokio::io::{AsyncBufReadExt, BufReader, Lines};
use tokio::process::{Child, ChildStdout, Command};
use tokio::time::timeout;

use crate::common::Failure;

const ROLE: &str = "PICKUP_ROLE";
const URL: &str = "PICKUP_REDIS";
/// Far more than any task waits: then something is broken.
const LIMIT: Duration = Duration::from_secs(20);

/// This program once more, in another role.
pub struct Receiver {
    lines: Lines<BufReader<ChildStdout>>,
    /// Killed when dropped.
    _process: Child,
}

impl Receiver {
    pub fn start(role: &str, url: &str) -> Result<Self, Failure> {
        let mut process = Command::new(std::env::current_exe()?)
            .env(ROLE, role)
            .env(URL, url)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()?;
        let stdout = process.stdout.take().ok_or("stdout is piped")?;
        Ok(Self {
            lines: BufReader::new(stdout).lines(),
            _process: process,
        })
    }

    /// How long the next task waited, in ms.
    pub async fn next(&mut self) -> Result<f64, Failure> {
        let line = timeout(LIMIT, self.lines.next_line()).await??;
        let ns: f64 = line.ok_or("the other process ended")?.parse()?;
        Ok(ns / 1e6)
    }
}

/// The role and Redis of this process; `None` in the one that was started first.
pub fn role() -> Option<(String, String)> {
    let given = (std::env::var(ROLE).ok()?, std::env::var(URL).ok()?);
    // The parent's end of the pipe closes however it ends.
    std::thread::spawn(|| {
        let _ = std::io::stdin().read_to_end(&mut Vec::new());
        std::process::exit(0);
    });
    Some(given)
}
