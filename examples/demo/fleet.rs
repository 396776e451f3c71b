//! The worker processes, as their parent sees them.

use std::fs::File;
use std::io::Write;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::time::Duration;

use anyhow::Context;
use tokio::time::sleep;

use crate::journal::{Entry, Reader};

/// One worker process. Killed when dropped; if this process is killed, the end of the pipe tells it.
pub struct Worker {
    pub name: String,
    /// Its server's id, once it is ready.
    pub server: Option<String>,
    process: Child,
    stdin: ChildStdin,
    journal: PathBuf,
    reader: Option<Reader>,
}

impl Worker {
    /// Runs this program once more. What it reports and logs goes to files in `home`.
    pub fn start(number: usize, url: &str, home: &Path) -> anyhow::Result<Self> {
        let name = format!("worker {number}");
        let journal = home.join(format!("worker-{number}.journal"));
        let log = File::create(home.join(format!("worker-{number}.log")))?;
        let mut process = Command::new(std::env::current_exe()?)
            .args(["worker", url])
            .arg(&journal)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(log)
            // Out of reach of the terminal's Ctrl-C, which is for the parent to act on.
            .process_group(0)
            .spawn()
            .with_context(|| format!("could not start {name}"))?;
        let stdin = process.stdin.take().context("stdin is piped")?;
        Ok(Self {
            name,
            server: None,
            process,
            stdin,
            journal,
            reader: None,
        })
    }

    pub fn pid(&self) -> u32 {
        self.process.id()
    }

    /// What it has written down since the last call.
    pub fn news(&mut self) -> anyhow::Result<Vec<Entry>> {
        if self.reader.is_none() {
            self.reader = Reader::open(&self.journal)?;
        }
        let Some(reader) = &mut self.reader else {
            return Ok(Vec::new());
        };
        let news = reader.read()?;
        for entry in &news {
            if let Entry::Opened(server) = entry {
                self.server = Some(server.clone());
            }
        }
        Ok(news)
    }

    /// How it ended, if it did.
    pub fn ended(&mut self) -> anyhow::Result<Option<ExitStatus>> {
        Ok(self.process.try_wait()?)
    }

    /// Stops it in the middle of whatever it does, so that one can look.
    pub fn freeze(&self) -> anyhow::Result<()> {
        self.signal("-STOP")
    }

    /// Lets it go on.
    pub fn thaw(&self) -> anyhow::Result<()> {
        self.signal("-CONT")
    }

    fn signal(&self, signal: &str) -> anyhow::Result<()> {
        let pid = self.pid().to_string();
        let status = Command::new("sh")
            .args(["-c", "kill \"$1\" \"$2\"", "kill", signal, &pid])
            .process_group(0)
            .status()?;
        anyhow::ensure!(status.success(), "kill {signal} {pid}: {status}");
        Ok(())
    }

    /// SIGKILL: it can do nothing about it. Returns when it is gone.
    pub fn kill(&mut self) -> anyhow::Result<()> {
        self.process.kill()?;
        self.process.wait()?;
        Ok(())
    }

    /// Asks it to stop, and waits for its end.
    pub async fn stop(&mut self, limit: Duration) -> anyhow::Result<()> {
        self.stdin.write_all(b"stop\n")?;
        let gone = async {
            loop {
                if let Some(status) = self.process.try_wait()? {
                    break Ok::<_, anyhow::Error>(status);
                }
                sleep(Duration::from_millis(10)).await;
            }
        };
        let status = tokio::time::timeout(limit, gone)
            .await
            .with_context(|| format!("{} does not stop", self.name))??;
        anyhow::ensure!(status.success(), "{} ended with {status}", self.name);
        Ok(())
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        let _ = self.kill();
    }
}
