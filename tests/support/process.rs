//! A server process and its directory, neither of which outlives this process.
//!
//! Rust runs no destructor when a process is killed, and none for a static. So
//! a shell, the guard, reads from a pipe that only this process can write to.
//! However this process ends, the pipe closes, and the guard ends the server
//! and removes the directory. Both run in process groups of their own, out of
//! reach of the terminal's Ctrl-C.

use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, Write};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use super::signal;

/// Reads process ids; the last one is the server to end, none after an empty
/// line. Removes the directory more than once, because a server that is being
/// killed may still make a file.
const GUARD: &str = r#"
trap '' HUP INT QUIT TERM
mkdir -p "$1" && echo ready || exit 1
server=
while read -r line; do server=$line; done
if [ -n "$server" ]; then kill -KILL "-$server"; fi
tries=0
while [ -e "$1" ] && [ "$tries" -lt 50 ]; do
    if [ "$tries" -gt 0 ]; then sleep 0.1; fi
    rm -rf "$1"
    tries=$((tries + 1))
done
"#;

/// Starts only when told to, which is after the guard knows the process id.
const SERVER: &str = r#"
read -r go || exit 0
for program in redis-server valkey-server; do
    if command -v "$program" >/dev/null; then exec "$program" "$1" </dev/null; fi
done
echo 'there is no redis-server or valkey-server on PATH: see .ci/ensure-redis'
exit 127
"#;

/// A server that is started with `<dir>/redis.conf` and logs to `<dir>/log`.
pub struct Process {
    dir: PathBuf,
    guard: Child,
    server: Option<Child>,
}

impl Process {
    /// Makes the directory; starts no server yet.
    pub fn new(dir: PathBuf) -> Self {
        let mut guard = Command::new("sh")
            .args(["-c", GUARD, "guard"])
            .arg(&dir)
            .current_dir("/")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .process_group(0)
            .spawn()
            .expect("sh must start");
        let mut ready = String::new();
        BufReader::new(guard.stdout.take().expect("stdout is piped"))
            .read_line(&mut ready)
            .expect("the guard's output must be readable");
        assert_eq!(ready.trim(), "ready", "cannot make {}", dir.display());
        Self {
            dir,
            guard,
            server: None,
        }
    }

    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// What the server has logged since its last start.
    pub fn log(&self) -> String {
        let log = fs::read(self.dir.join("log")).unwrap_or_default();
        String::from_utf8_lossy(&log).into_owned()
    }

    /// The server's process id. Panics when it was killed.
    pub fn pid(&self) -> u32 {
        self.server.as_ref().expect("no server runs").id()
    }

    /// Starts the server, after killing the one that may run.
    pub fn launch(&mut self) {
        self.kill();
        let log = File::create(self.dir.join("log")).expect("the log must be writable");
        let mut server = Command::new("sh")
            .args(["-c", SERVER, "server"])
            .arg(self.dir.join("redis.conf"))
            .stdin(Stdio::piped())
            .stdout(log.try_clone().expect("a file handle can be cloned"))
            .stderr(log)
            .process_group(0)
            .spawn()
            .expect("sh must start");
        self.tell_guard(&server.id().to_string())
            .expect("the guard must be alive");
        let mut go = server.stdin.take().expect("stdin is piped");
        go.write_all(b"go\n").expect("the server's shell must read");
        self.server = Some(server);
    }

    /// Whether the server has ended by itself.
    pub fn has_ended(&mut self) -> bool {
        let server = self.server.as_mut().expect("no server was started");
        matches!(server.try_wait(), Ok(Some(_)))
    }

    /// Ends the server and its children with SIGKILL, if it runs.
    pub fn kill(&mut self) {
        if let Some(mut server) = self.server.take() {
            signal::send_to_group("KILL", server.id());
            // Before the wait, which frees the id for other processes.
            let _ = self.tell_guard("");
            let _ = server.wait();
        }
    }

    fn tell_guard(&mut self, line: &str) -> io::Result<()> {
        let pipe = self.guard.stdin.as_mut().expect("stdin is piped");
        writeln!(pipe, "{line}")
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.kill();
        drop(self.guard.stdin.take());
        let _ = self.guard.wait();
    }
}
