//! Running other programs: said aloud, timed, and failing with the command that failed.

use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

/// How long a program that was asked to end may take.
const ENDED_WITHIN: Duration = Duration::from_secs(10);
const POLL_EVERY: Duration = Duration::from_millis(20);

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

/// Waits for a program that was asked to end, and kills it when it does not.
///
/// # Errors
/// When nobody can tell whether it ended.
pub fn see_end(child: &mut Child) -> Result<()> {
    let deadline = Instant::now() + ENDED_WITHIN;
    while Instant::now() < deadline {
        if child.try_wait()?.is_some() {
            return Ok(());
        }
        thread::sleep(POLL_EVERY);
    }
    child.kill()?;
    child.wait()?;
    Ok(())
}

fn line_of(command: &Command) -> String {
    let program = std::path::Path::new(command.get_program());
    let name = program.file_name().unwrap_or(command.get_program());
    let words = std::iter::once(name).chain(command.get_args());
    words.map(|word| word.to_string_lossy()).collect::<Vec<_>>().join(" ")
}
