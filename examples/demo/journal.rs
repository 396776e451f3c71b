//! What a worker has started and ended, one line each, in a file that is only appended to. A line
//! is one write to the system, so it is there whatever happens to the process afterwards.

use std::fs::File;
use std::io::{self, Read, Write};
use std::path::Path;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::Context;

/// What a handler found out about a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Packed {
    pub sha256: String,
    pub bytes: u64,
    pub packed_bytes: u64,
}

/// One line.
#[derive(Debug)]
pub enum Entry {
    /// The server with this id is ready.
    Opened(String),
    /// A handler began with this task, at this time.
    Started(String, SystemTime),
    /// A handler ended.
    Ended(String, Packed),
}

/// The worker's end.
#[derive(Clone)]
pub struct Journal(Arc<File>);

impl Journal {
    pub fn create(path: &Path) -> io::Result<Self> {
        let file = File::options().create_new(true).append(true).open(path)?;
        Ok(Self(Arc::new(file)))
    }

    pub fn opened(&self, server: &str) -> io::Result<()> {
        self.write(&format!("opened {server}\n"))
    }

    pub fn started(&self, task: &str) -> io::Result<()> {
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        let ms = now.unwrap_or_default().as_millis();
        self.write(&format!("started {task} {ms}\n"))
    }

    pub fn ended(&self, task: &str, packed: &Packed) -> io::Result<()> {
        let Packed {
            sha256,
            bytes,
            packed_bytes,
        } = packed;
        self.write(&format!("ended {task} {sha256} {bytes} {packed_bytes}\n"))
    }

    fn write(&self, line: &str) -> io::Result<()> {
        (&*self.0).write_all(line.as_bytes())
    }
}

/// The parent's end, which follows the file as it grows.
pub struct Reader {
    file: File,
    /// The beginning of a line that is not all there yet.
    rest: String,
}

impl Reader {
    /// `None` while there is no such file.
    pub fn open(path: &Path) -> io::Result<Option<Self>> {
        match File::open(path) {
            Ok(file) => Ok(Some(Self {
                file,
                rest: String::new(),
            })),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// What has been added since the last call.
    pub fn read(&mut self) -> anyhow::Result<Vec<Entry>> {
        self.file.read_to_string(&mut self.rest)?;
        let whole = self.rest.rfind('\n').map_or(0, |end| end + 1);
        let lines: String = self.rest.drain(..whole).collect();
        lines
            .lines()
            .map(|line| parse(line).with_context(|| format!("not a line of a journal: {line:?}")))
            .collect()
    }
}

fn parse(line: &str) -> Option<Entry> {
    let entry = match line.split(' ').collect::<Vec<_>>()[..] {
        ["opened", server] => Entry::Opened(server.to_owned()),
        ["started", task, ms] => {
            let since = std::time::Duration::from_millis(ms.parse().ok()?);
            Entry::Started(task.to_owned(), UNIX_EPOCH + since)
        }
        ["ended", task, sha256, bytes, packed_bytes] => {
            let packed = Packed {
                sha256: sha256.to_owned(),
                bytes: bytes.parse().ok()?,
                packed_bytes: packed_bytes.parse().ok()?,
            };
            Entry::Ended(task.to_owned(), packed)
        }
        _ => return None,
    };
    Some(entry)
}
