//! Signals, sent through a shell's `kill`, so that no unsafe code is needed.

use std::process::{Command, Stdio};

/// Sends a signal (`"KILL"`, `"TERM"`, `"STOP"`, `"CONT"`, …) to a process.
/// Panics when there is no such process.
pub fn send(signal: &str, pid: u32) {
    let sent = kill(&format!("-{signal}"), &pid.to_string());
    assert!(sent, "no process {pid} to send {signal} to");
}

/// Sends a signal to every process of a group. An empty group is no error.
pub fn send_to_group(signal: &str, leader: u32) {
    kill(&format!("-{signal}"), &format!("-{leader}"));
}

/// Whether the process exists. One that has ended exists until its parent has
/// asked for its exit status.
pub fn exists(pid: u32) -> bool {
    kill("-0", &pid.to_string())
}

fn kill(signal: &str, target: &str) -> bool {
    // The shell has `kill` built in; a program of that name need not be there.
    Command::new("sh")
        .args(["-c", "kill \"$1\" \"$2\"", "kill", signal, target])
        .stderr(Stdio::null())
        .status()
        .expect("sh must start")
        .success()
}
