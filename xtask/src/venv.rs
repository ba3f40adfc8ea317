//! Python environments at the versions and hashes of `infra/requirements-*.txt`, made once and kept until those change.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use crate::command::run;
use crate::workspace::Workspace;

/// A Python environment that is ready to use.
pub struct Venv {
    folder: PathBuf,
}

impl Venv {
    /// What builds, checks and deploys the template: `sam`, `cargo-lambda`, `cfn-lint`.
    ///
    /// # Errors
    /// When Python is absent or the packages cannot be installed.
    pub fn sam(workspace: &Workspace) -> Result<Self> {
        Self::of(workspace, "sam")
    }

    /// The AWS emulator.
    ///
    /// # Errors
    /// When Python is absent or the packages cannot be installed.
    pub fn ministack(workspace: &Workspace) -> Result<Self> {
        Self::of(workspace, "ministack")
    }

    /// What the README's consumer needs: `boto3`.
    ///
    /// # Errors
    /// When Python is absent or the packages cannot be installed.
    pub fn readme(workspace: &Workspace) -> Result<Self> {
        Self::of(workspace, "readme")
    }

    /// What plays the OpenAPI document against an API.
    ///
    /// # Errors
    /// When Python is absent or the packages cannot be installed.
    pub fn schemathesis(workspace: &Workspace) -> Result<Self> {
        Self::of(workspace, "schemathesis")
    }

    fn of(workspace: &Workspace, name: &str) -> Result<Self> {
        let requirements = workspace.root().join(format!("infra/requirements-{name}.txt"));
        let wanted = fs::read_to_string(&requirements)
            .with_context(|| format!("failed to read {}", requirements.display()))?;
        let venv = Self { folder: workspace.cache().join("venv").join(name) };
        // Written last: an installation that was cut off has no stamp and is made anew.
        let stamp = venv.folder.join("requirements.installed");
        if fs::read_to_string(&stamp).is_ok_and(|installed| installed == wanted) {
            return Ok(venv);
        }
        venv.make(&requirements)?;
        fs::write(&stamp, wanted).context("failed to mark the environment as complete")?;
        Ok(venv)
    }

    fn make(&self, requirements: &Path) -> Result<()> {
        if self.folder.exists() {
            fs::remove_dir_all(&self.folder).context("failed to remove the outdated environment")?;
        }
        run(Command::new("python3").args(["-m", "venv"]).arg(&self.folder))?;
        // The files hold the whole tree: pip resolves nothing, and takes nothing that has no hash there.
        let pip = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check"];
        let exactly = ["--no-deps", "--require-hashes", "--requirement"];
        run(self.program("python").args(pip).args(exactly).arg(requirements))
    }

    /// A call of a program of this environment, which also finds the environment's other programs.
    pub fn program(&self, name: &str) -> Command {
        let mut command = Command::new(self.bin().join(name));
        command.env("PATH", self.path());
        command
    }

    /// Where its programs lie.
    pub fn bin(&self) -> PathBuf {
        self.folder.join("bin")
    }

    fn path(&self) -> OsString {
        let mut path = OsString::from(self.bin());
        if let Some(rest) = std::env::var_os("PATH") {
            path.push(":");
            path.push(rest);
        }
        path
    }
}
