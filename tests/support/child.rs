//! This test binary, run once more as a child process that can be killed.
//!
//! The child runs one ignored test, its entry:
//!
//! ```ignore
//! #[test]
//! #[ignore = "runs in a child process of other tests"]
//! fn worker() {
//!     if !child::end_with_parent() {
//!         return; // somebody ran all ignored tests
//!     }
//!     let url = std::env::var("REDIS").unwrap();
//!     println!("ready");
//!     // … work until killed …
//! }
//!
//! let mut worker = child::spawn("worker", &[("REDIS", &redis.url())]);
//! worker.wait_for_line("ready", Duration::from_secs(10)).await;
//! worker.signal("KILL");
//! ```

use std::env;
use std::io::{BufRead, BufReader, Read};
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio, exit};
use std::thread;
use std::time::Duration;

use tokio::sync::mpsc;
use tokio::time::{Instant, sleep, timeout_at};

use super::signal;

const MARK: &str = "SUPPORT_CHILD_OF";

/// A child process. Killed when dropped.
pub struct ChildProcess {
    process: Child,
    /// Closes when this process ends, which ends the child.
    stdin: ChildStdin,
    output: mpsc::UnboundedReceiver<String>,
    seen: Vec<String>,
}

/// Runs the test `entry` (its full path in this binary, `module::name`) as a
/// child process, with these environment variables added. What the child writes
/// to stderr goes to this process's stderr.
pub fn spawn(entry: &str, envs: &[(&str, &str)]) -> ChildProcess {
    spawn_under(&["env"], entry, envs)
}

/// As [`spawn`], but this command runs the child.
pub fn spawn_under(command: &[&str], entry: &str, envs: &[(&str, &str)]) -> ChildProcess {
    let mut process = Command::new(command[0])
        .args(&command[1..])
        .arg(env::current_exe().expect("this binary has a path"))
        // With one thread the test's name would stand in front of its first line.
        .args([
            "--ignored",
            "--exact",
            entry,
            "--nocapture",
            "--test-threads=2",
        ])
        .env(MARK, std::process::id().to_string())
        .envs(envs.iter().copied())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("this binary must start once more");
    let stdin = process.stdin.take().expect("stdin is piped");
    let stdout = process.stdout.take().expect("stdout is piped");
    let (lines, output) = mpsc::unbounded_channel();
    thread::spawn(move || {
        for line in BufReader::new(stdout).lines().map_while(Result::ok) {
            if lines.send(line).is_err() {
                break;
            }
        }
    });
    ChildProcess {
        process,
        stdin,
        output,
        seen: Vec::new(),
    }
}

/// To be called first in a child's entry: makes it end when the parent ends, in
/// whatever way. False when this process is not a child of [`spawn`].
pub fn end_with_parent() -> bool {
    if env::var_os(MARK).is_none() {
        return false;
    }
    thread::spawn(|| {
        let _ = std::io::stdin().read_to_end(&mut Vec::new());
        exit(1);
    });
    true
}

impl ChildProcess {
    pub fn pid(&self) -> u32 {
        self.process.id()
    }

    /// Waits for the child's next line that starts with `prefix`, and returns
    /// the rest of that line. Panics after `limit`, or when the child ends.
    pub async fn wait_for_line(&mut self, prefix: &str, limit: Duration) -> String {
        let deadline = Instant::now() + limit;
        loop {
            match timeout_at(deadline, self.output.recv()).await {
                Ok(Some(line)) => {
                    self.seen.push(line);
                    let line = self.seen.last().expect("it was just pushed");
                    if let Some(rest) = line.strip_prefix(prefix) {
                        return rest.trim().to_owned();
                    }
                }
                Ok(None) => panic!("the child ended without {prefix:?}: {:#?}", self.seen),
                Err(_) => panic!("no {prefix:?} within {limit:?}: {:#?}", self.seen),
            }
        }
    }

    /// Sends a signal: `"KILL"`, `"TERM"`, `"INT"`, `"STOP"`, `"CONT"`, ….
    pub fn signal(&self, signal: &str) {
        signal::send(signal, self.pid());
    }

    /// Waits for the child's end. Panics after `limit`.
    pub async fn wait_exit(&mut self, limit: Duration) -> ExitStatus {
        let deadline = Instant::now() + limit;
        loop {
            if let Some(status) = self.process.try_wait().expect("a child can be asked") {
                return status;
            }
            if Instant::now() >= deadline {
                panic!("the child did not end within {limit:?}: {:#?}", self.seen);
            }
            sleep(Duration::from_millis(5)).await;
        }
    }
}

impl Drop for ChildProcess {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
