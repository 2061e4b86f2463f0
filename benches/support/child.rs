//! This program once more, as a process of its own: it can be ended when it takes too long, and its memory is its own.

use std::ffi::OsStr;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Runs this program as `--one ARGS` and reads the numbers it prints; nothing if that takes longer than `limit`.
pub fn numbers<S: AsRef<OsStr>>(args: impl IntoIterator<Item = S>, limit: Duration) -> Option<Vec<f64>> {
    let mut child = Command::new(std::env::current_exe().ok()?)
        .arg("--one")
        .args(args)
        .stdout(Stdio::piped())
        .spawn()
        .ok()?;
    let begin = Instant::now();
    while child.try_wait().ok()?.is_none() {
        if begin.elapsed() > limit {
            child.kill().ok()?;
            child.wait().ok()?;
            return None;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    let text = String::from_utf8(child.wait_with_output().ok()?.stdout).ok()?;
    Some(text.split_whitespace().filter_map(|w| w.parse().ok()).collect())
}
