//! One run of the binary over rows that a test gives.

use std::io::Write as _;
use std::process::{Command, Output, Stdio};

use serde_json::Value;

/// A command over the file of `jobs`, which a test may change before it runs.
pub fn dry_run(jobs: &str, from: &str, to: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tidegate"));
    command.args(["dry-run", "--jobs", jobs, "--from", from, "--to", to]);
    command.env_remove("TIDEGATE_LOG").stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// Runs it over rows in a file.
pub fn run(rows: &str, from: &str, to: &str) -> Output {
    run_with(rows, from, to, &[])
}

/// The same with more arguments.
pub fn run_with(rows: &str, from: &str, to: &str, more: &[&str]) -> Output {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(rows.as_bytes()).unwrap();
    dry_run(file.path().to_str().unwrap(), from, to).args(more).output().unwrap()
}

/// Stdout as text, of a run that had nothing to complain about.
pub fn stdout(output: &Output) -> &str {
    let says = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && says.is_empty(), "{says}");
    std::str::from_utf8(&output.stdout).unwrap()
}

/// The lines of stdout without the last, and the summary.
pub fn lines(output: &Output) -> (Vec<&str>, Value) {
    let mut lines: Vec<&str> = stdout(output).lines().collect();
    let mut last: Value = serde_json::from_str(lines.pop().unwrap()).unwrap();
    (lines, last["summary"].take())
}
