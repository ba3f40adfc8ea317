//! Running other programs: said aloud, timed, and failing with the command that failed.

use std::process::{Command, Stdio};
use std::time::Instant;

use anyhow::{Context, Result, bail};

/// Runs `command` with its output on the terminal.
///
/// # Errors
/// When it cannot be started or ends with a failure.
pub fn run(command: &mut Command) -> Result<()> {
    let line = line_of(command);
    eprintln!("$ {line}");
    let started = Instant::now();
    let status = command.status().with_context(|| format!("failed to start {line}"))?;
    if !status.success() {
        bail!("`{line}` ended with {status}");
    }
    eprintln!("  {:.1} s", started.elapsed().as_secs_f64());
    Ok(())
}

/// Runs `command` and gives what it wrote to standard output.
///
/// # Errors
/// When it cannot be started, ends with a failure or writes something else than UTF-8.
pub fn capture(command: &mut Command) -> Result<String> {
    let line = line_of(command);
    let output =
        command.stderr(Stdio::inherit()).output().with_context(|| format!("failed to start {line}"))?;
    if !output.status.success() {
        bail!("`{line}` ended with {}\n{}", output.status, String::from_utf8_lossy(&output.stdout));
    }
    Ok(String::from_utf8(output.stdout)?)
}

fn line_of(command: &Command) -> String {
    let program = std::path::Path::new(command.get_program());
    let name = program.file_name().unwrap_or(command.get_program());
    let words = std::iter::once(name).chain(command.get_args());
    words.map(|word| word.to_string_lossy()).collect::<Vec<_>>().join(" ")
}
