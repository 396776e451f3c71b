//! Which files are worked on.

use std::env;
use std::fs::{self, File};
use std::path::{Path, PathBuf};

use anyhow::{Context, ensure};

use crate::settings::{MAX_BYTES, MAX_FILES, MIN_FILES};

pub struct Input {
    pub directory: PathBuf,
    pub files: Vec<String>,
    pub bytes: u64,
}

/// The files of the directory, or of the first of some that every developer's machine is likely to
/// have.
pub fn find(directory: Option<PathBuf>) -> anyhow::Result<Input> {
    if let Some(directory) = directory {
        let input = list(&directory.canonicalize().with_context(|| show(&directory))?);
        ensure!(
            input.files.len() >= MIN_FILES,
            "{} has {} readable files, and the demo needs {MIN_FILES}",
            directory.display(),
            input.files.len()
        );
        return Ok(input);
    }
    let documents = list(Path::new("/usr/share/doc"));
    if documents.files.len() >= 2_000 {
        return Ok(documents);
    }
    let sources = list(&cargo_home().join("registry/src"));
    ensure!(
        sources.files.len() >= MIN_FILES,
        "neither /usr/share/doc nor cargo's registry has enough files: name a directory"
    );
    Ok(sources)
}

fn cargo_home() -> PathBuf {
    let home = || env::home_dir().unwrap_or_default().join(".cargo");
    env::var_os("CARGO_HOME").map_or_else(home, PathBuf::from)
}

fn show(path: &Path) -> String {
    path.display().to_string()
}

/// The readable files below a directory, as many as the demo takes.
fn list(directory: &Path) -> Input {
    let mut input = Input {
        directory: directory.to_owned(),
        files: Vec::new(),
        bytes: 0,
    };
    walk(directory, &mut input);
    mix(&mut input.files);
    input
}

/// Neighbours are alike, and large ones stand together: far jumps make each stretch of the list
/// stand for the whole.
fn mix(files: &mut Vec<String>) {
    // A prime above the number of files, so that each comes once.
    const JUMP: usize = 7_919;
    let n = files.len();
    *files = (0..n).map(|i| files[i * JUMP % n].clone()).collect();
}

fn walk(directory: &Path, input: &mut Input) {
    // What cannot be read is left out.
    let Ok(entries) = fs::read_dir(directory) else {
        return;
    };
    let mut paths: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    paths.sort();
    for path in paths {
        if input.files.len() == MAX_FILES {
            return;
        }
        // Links are not followed, so that no file comes twice and no directory goes in a circle.
        match path.symlink_metadata() {
            Ok(metadata) if metadata.is_dir() => walk(&path, input),
            Ok(metadata) if metadata.is_file() => add(&path, metadata.len(), input),
            _ => {}
        }
    }
}

fn add(path: &Path, bytes: u64, input: &mut Input) {
    let fits = input.bytes + bytes <= MAX_BYTES;
    if let Some(path) = path.to_str()
        && fits
        && File::open(path).is_ok()
    {
        input.bytes += bytes;
        input.files.push(path.to_owned());
    }
}
