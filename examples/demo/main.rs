//! Thousands of real files, two worker processes, and one SIGKILL in the middle: at the end every
//! task is accounted for.
//!
//! ```text
//! make demo                                            # or, with arguments:
//! cargo run --release --example demo -- [--no-bar] [DIRECTORY]
//! ```
//!
//! Each file of a directory becomes a task: hash it, compress it. Both workers are this program,
//! run once more. Each writes down what it starts and ends in a file that survives its death; the
//! ledger at the end is made from these files, and every hash is checked against `sha256sum`.
//!
//! Read `work.rs` for the task and its handler, `worker.rs` for the server, then `story.rs`.

mod calibrate;
mod fleet;
mod input;
mod journal;
mod ledger;
mod proof;
mod report;
mod screen;
mod settings;
mod store;
mod story;
mod work;
mod worker;

/// The tests' own Redis server, which ends when this process ends, in whatever way.
#[path = "../../tests/support/mod.rs"]
mod support;

use std::path::PathBuf;
use std::process::ExitCode;

use tokio::signal::unix::{SignalKind, signal};
use tokio::time::{sleep, timeout};

const USAGE: &str = "usage: demo [--no-bar] [DIRECTORY]";

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let runtime = match tokio::runtime::Runtime::new() {
        Ok(runtime) => runtime,
        Err(error) => return complain(&error.into()),
    };
    if let ["worker", url, journal] = args.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        return match runtime.block_on(worker::run(url, journal.as_ref())) {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => complain(&error),
        };
    }
    let mut plan = story::Plan::default();
    for arg in args {
        match arg.as_str() {
            "--no-bar" => plan.bar = false,
            "-h" | "--help" => {
                println!("{USAGE}");
                return ExitCode::SUCCESS;
            }
            flag if flag.starts_with('-') => {
                eprintln!("unknown flag {flag}; {USAGE}");
                return ExitCode::from(2);
            }
            _ if plan.directory.is_some() => {
                eprintln!("more than one directory; {USAGE}");
                return ExitCode::from(2);
            }
            directory => plan.directory = Some(PathBuf::from(directory)),
        }
    }
    runtime.block_on(conduct(plan))
}

/// Runs the demo, but not past its limit and not past a signal. Whichever way it ends, its parts
/// are dropped before this returns, which ends the workers and Redis.
async fn conduct(plan: story::Plan) -> ExitCode {
    let mut story = tokio::spawn(story::run(plan));
    let code = tokio::select! {
        told = &mut story => return match told {
            Ok(Ok(())) => ExitCode::SUCCESS,
            Ok(Err(error)) => complain(&error),
            Err(panic) => complain(&panic.into()),
        },
        () = sleep(settings::LIMIT) => {
            eprintln!("demo: FAILED: not done within {:?}", settings::LIMIT);
            1
        }
        code = interrupted() => {
            eprintln!("demo: interrupted");
            code
        }
    };
    story.abort();
    // It notices at its next wait.
    let _ = timeout(settings::PATIENCE, story).await;
    ExitCode::from(code)
}

/// Waits for a signal that asks for the end; answers the exit code that shells give to it.
async fn interrupted() -> u8 {
    let wait = async |kind: SignalKind| match signal(kind) {
        Ok(mut signal) => drop(signal.recv().await),
        Err(_) => std::future::pending().await,
    };
    tokio::select! {
        () = wait(SignalKind::hangup()) => 129,
        () = wait(SignalKind::interrupt()) => 130,
        () = wait(SignalKind::terminate()) => 143,
    }
}

fn complain(error: &anyhow::Error) -> ExitCode {
    eprintln!("demo: FAILED: {error:#}");
    ExitCode::FAILURE
}
