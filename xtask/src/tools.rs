//! Programs of Rust that the recipes need, most of them subcommands of cargo: used from the machine if it has them, else built into
//! the cache.

use std::env;
use std::path::PathBuf;
use std::process::Command;

use anyhow::Result;

use crate::command::run;
use crate::workspace::{Workspace, cargo};

/// A program at a fixed version.
pub struct Tool {
    name: &'static str,
    /// The package that it is in.
    package: &'static str,
    version: &'static str,
    /// What `cargo install` is told beside the version.
    options: &'static [&'static str],
}

/// Licences, sources and duplicates of the dependencies.
pub const DENY: Tool = Tool {
    name: "cargo-deny",
    package: "cargo-deny",
    version: "0.20.2",
    // It runs for a second: to optimise it takes longer than that many runs.
    options: &["--debug"],
};
/// The test runner.
pub const NEXTEST: Tool = Tool {
    name: "cargo-nextest",
    package: "cargo-nextest",
    version: "0.9.143",
    options: &["--no-default-features", "--features", "default-no-update"],
};

/// Draws stacks. It reads them from a file, a line for each: its functions, the outermost first, and how often it was seen.
pub const FLAMEGRAPH: Tool =
    Tool { name: "inferno-flamegraph", package: "inferno", version: "0.12.8", options: &[] };

/// Builds all tests, and with them the programs and examples that are called as the tests build them: with other features all that
/// they stand on would be compiled once more.
///
/// # Errors
/// When they cannot be built.
pub fn build_tests(workspace: &Workspace) -> Result<()> {
    run(NEXTEST.command(workspace)?.args(["run", "--workspace", "--locked", "--no-run"]))
}

impl Tool {
    /// A call of this subcommand in the workspace's root, installed first where it is absent.
    ///
    /// # Errors
    /// When it is absent and cannot be built.
    pub fn command(&self, workspace: &Workspace) -> Result<Command> {
        let mut command = Command::new(self.program(workspace)?);
        command.arg(self.name.trim_start_matches("cargo-")).current_dir(workspace.root());
        Ok(command)
    }

    /// The program itself, installed first where it is absent.
    ///
    /// # Errors
    /// When it is absent and cannot be built.
    pub fn program(&self, workspace: &Workspace) -> Result<PathBuf> {
        let installed = workspace.cache().join("tools");
        match self.on_path().or_else(|| executable(installed.join("bin").join(self.name))) {
            Some(program) => Ok(program),
            None => {
                run(cargo(workspace)
                    .args(["install", "--locked", "--version", self.version])
                    .args(self.options)
                    .arg("--root")
                    .arg(&installed)
                    // Not the workspace's folder: another profile would only evict what is built there.
                    .arg("--target-dir")
                    .arg(installed.join("build"))
                    .arg(self.package))?;
                std::fs::remove_dir_all(installed.join("build"))?;
                Ok(installed.join("bin").join(self.name))
            }
        }
    }

    fn on_path(&self) -> Option<PathBuf> {
        env::split_paths(&env::var_os("PATH")?).find_map(|folder| executable(folder.join(self.name)))
    }
}

fn executable(file: PathBuf) -> Option<PathBuf> {
    file.is_file().then_some(file)
}
