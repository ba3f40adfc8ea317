//! Running other programs: said aloud, timed, and failing with the command that failed.

use std::env;
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
    let status = apart(command).status().with_context(|| format!("failed to start {line}"))?;
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
    let output = apart(command)
        .stderr(Stdio::inherit())
        .output()
        .with_context(|| format!("failed to start {line}"))?;
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

/// Keeps from `command` what cargo told this program of its package. A build script that looks at it, as that of `ring`, would be
/// run anew in each turn from a cargo that a person called to one that a recipe did, and all that stands on it built anew.
fn apart(command: &mut Command) -> &mut Command {
    let of_package = |name: &str| {
        name.starts_with("CARGO_PKG_") || name.starts_with("CARGO_MANIFEST_") || name == "CARGO_BIN_NAME"
    };
    for name in env::vars_os().filter_map(|(name, _)| name.into_string().ok()).filter(|name| of_package(name))
    {
        command.env_remove(name);
    }
    command
}

fn line_of(command: &Command) -> String {
    let program = std::path::Path::new(command.get_program());
    let name = program.file_name().unwrap_or(command.get_program());
    let words = std::iter::once(name).chain(command.get_args());
    words.map(|word| word.to_string_lossy()).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_are_not_told_of_this_package() {
        assert!(
            env::var_os("CARGO_MANIFEST_DIR").is_some(),
            "cargo tells it to its tests as to its programs"
        );
        let told = capture(&mut Command::new("env")).unwrap();
        let of_package: Vec<_> = told
            .lines()
            .filter(|line| line.starts_with("CARGO_PKG_") || line.starts_with("CARGO_MANIFEST_"))
            .collect();
        assert_eq!(of_package, [""; 0]);
    }
}
