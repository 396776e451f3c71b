//! Redis servers for tests.

use std::env;
use std::fs;
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread::sleep;
use std::time::{Duration, Instant};

use ::redis::aio::MultiplexedConnection;
use ::redis::{AsyncConnectionConfig, Client};

use super::prefix::random;
use super::process::Process;
use super::signal;

const START_LIMIT: Duration = Duration::from_secs(20);
const CLIENT_LIMIT: Duration = Duration::from_secs(5);

/// A private `redis-server` (or `valkey-server`) on a loopback port and on a
/// Unix socket. Ends, and its directory goes, when this is dropped or when the
/// process ends, in whatever way.
pub struct RedisServer {
    port: u16,
    dir: PathBuf,
    process: Mutex<Process>,
}

impl RedisServer {
    /// The server that all tests of this binary share. Keeps nothing on disk.
    /// Only for tests that neither stop nor configure it; use
    /// [`unique_prefix`](super::unique_prefix) for their keys.
    pub fn shared() -> &'static RedisServer {
        static SHARED: OnceLock<RedisServer> = OnceLock::new();
        SHARED.get_or_init(|| RedisServer::start(&[]))
    }

    /// A server of one's own. `config` has lines of a `redis.conf`, for example
    /// `("appendonly", "yes")` or `("save", "60 1")`; an empty value is written
    /// as `""`. By default nothing is kept on disk. Blocks until it answers.
    pub fn start(config: &[(&str, &str)]) -> RedisServer {
        let dir = parent_dir().join(format!("redis-{:016x}", random()));
        let mut process = Process::new(dir.clone());
        let deadline = Instant::now() + START_LIMIT;
        loop {
            // Below the ports that systems give to outgoing connections, so
            // that none of these takes the port before a restart.
            let port = 20_000 + (random() % 12_000) as u16;
            fs::write(dir.join("redis.conf"), config_file(port, &dir, config))
                .expect("the configuration must be writable");
            if launch(&mut process, deadline) {
                return RedisServer {
                    port,
                    dir,
                    process: Mutex::new(process),
                };
            }
        }
    }

    /// `redis://127.0.0.1:<port>/`
    pub fn url(&self) -> String {
        format!("redis://127.0.0.1:{}/", self.port)
    }

    /// `unix://<path of the socket>`
    pub fn unix_url(&self) -> String {
        format!("unix://{}", socket(&self.dir).display())
    }

    pub fn port(&self) -> u16 {
        self.port
    }

    /// The server's process id. Panics between `kill` and `restart`.
    pub fn pid(&self) -> u32 {
        self.process().pid()
    }

    /// The data directory, which also holds `redis.conf`, `log` and the socket.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// What the server has logged since its last start.
    pub fn log(&self) -> String {
        self.process().log()
    }

    /// A new connection. It and each of its commands may take 5 s.
    pub async fn connection(&self) -> MultiplexedConnection {
        connection(&self.url()).await
    }

    /// Kills the server (SIGKILL). What it kept in memory only is lost.
    pub fn kill(&self) {
        self.process().kill();
    }

    /// Starts the server again on the same port and data directory, after
    /// killing it if it runs. Blocks until it has loaded its data.
    pub fn restart(&self) {
        let deadline = Instant::now() + START_LIMIT;
        while !launch(&mut self.process(), deadline) {
            sleep(Duration::from_millis(50));
        }
    }

    /// Freezes the server (SIGSTOP): connections stay open and get no answer.
    pub fn pause(&self) {
        signal::send("STOP", self.pid());
    }

    /// Ends a `pause`.
    pub fn resume(&self) {
        signal::send("CONT", self.pid());
    }

    fn process(&self) -> MutexGuard<'_, Process> {
        self.process.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A new connection to a test's Redis. The library's own limit of 0.5 s is too short for a busy machine.
pub async fn connection(url: &str) -> MultiplexedConnection {
    let limits = AsyncConnectionConfig::new()
        .set_connection_timeout(Some(CLIENT_LIMIT))
        .set_response_timeout(Some(CLIENT_LIMIT));
    Client::open(url)
        .expect("the URL is valid")
        .get_multiplexed_async_connection_with_config(&limits)
        .await
        .expect("the test's own Redis must accept a connection")
}

/// Starts the server and waits until it answers; false when its port is taken.
fn launch(process: &mut Process, deadline: Instant) -> bool {
    process.launch();
    let socket = socket(process.dir());
    loop {
        if answers(&socket) {
            return true;
        }
        let ended = process.has_ended();
        let in_time = Instant::now() < deadline;
        if ended && in_time && process.log().contains("Address already in use") {
            return false;
        }
        assert!(
            !ended && in_time,
            "the test's own Redis does not start:\n{}",
            process.log()
        );
        sleep(Duration::from_millis(5));
    }
}

/// Whether the server has started and loaded its data. Asks on the Unix socket,
/// behind which no other server can be, and which answers only once the port is
/// bound, too.
fn answers(socket: &Path) -> bool {
    let ping = || -> std::io::Result<Vec<u8>> {
        let mut stream = UnixStream::connect(socket)?;
        stream.set_read_timeout(Some(Duration::from_secs(1)))?;
        stream.write_all(b"PING\r\n")?;
        let mut reply = [0; 64];
        let length = stream.read(&mut reply)?;
        Ok(reply[..length].to_vec())
    };
    ping().is_ok_and(|reply| reply.starts_with(b"+PONG") || reply.starts_with(b"-NOAUTH"))
}

fn config_file(port: u16, dir: &Path, config: &[(&str, &str)]) -> String {
    let mut lines = format!(
        "bind 127.0.0.1\nport {port}\ndir {}\nunixsocket {}\n\
         save \"\"\nappendonly no\nenable-debug-command yes\n",
        quoted(dir),
        quoted(&socket(dir)),
    );
    for (name, value) in config {
        let value = if value.is_empty() { "\"\"" } else { value };
        lines.push_str(&format!("{name} {value}\n"));
    }
    lines
}

fn quoted(path: &Path) -> String {
    let path = path.to_str().expect("the path must be UTF-8");
    format!("\"{}\"", path.replace('\\', "\\\\").replace('"', "\\\""))
}

fn socket(dir: &Path) -> PathBuf {
    dir.join("s")
}

/// Where the servers' directories go: below target, if the path of a socket
/// there is short enough for the system (104 bytes on some).
fn parent_dir() -> PathBuf {
    let candidates = [
        option_env!("CARGO_TARGET_TMPDIR").map(PathBuf::from),
        target_dir().map(|target| target.join("tmp")),
        Some(env::temp_dir()),
    ];
    candidates
        .into_iter()
        .flatten()
        .find(|path| path.as_os_str().len() <= 78)
        .unwrap_or_else(|| PathBuf::from("/tmp"))
}

/// The target directory that this binary was built in; for examples, which
/// Cargo does not tell it.
fn target_dir() -> Option<PathBuf> {
    let binary = env::current_exe().ok()?;
    let target = binary
        .ancestors()
        .find(|path| path.join("CACHEDIR.TAG").exists())?;
    Some(target.to_owned())
}
