//! Redis: the machine's, or Debian's package unpacked into the cache, which needs no root.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

use crate::command::{capture, run};
use crate::workspace::Workspace;

/// What is said of its durability in the table.
pub const DURABILITY: &str = "append-only file, synced every second";
/// The server, the package that its program lies in, and the libraries that a machine may lack.
const DEBIAN: [&str; 6] = ["redis-server", "redis-tools", "liblzf1", "libjemalloc2", "libatomic1", "libssl3"];

/// A `redis-server` that can be started.
pub struct Redis {
    program: PathBuf,
    /// Where its libraries lie; empty for the machine's own.
    libraries: OsString,
    /// As it says itself.
    pub version: String,
}

impl Redis {
    /// # Errors
    /// When there is none and Debian's cannot be had.
    pub fn find(workspace: &Workspace) -> Result<Self> {
        if let Ok(redis) = Self::with("redis-server".into(), OsString::new()) {
            return Ok(redis);
        }
        let folder = workspace.cache().join("peers/redis");
        if let Ok(redis) = Self::unpacked(&folder) {
            return Ok(redis);
        }
        if folder.exists() {
            fs::remove_dir_all(&folder)?;
        }
        let downloads = folder.join("downloads");
        fs::create_dir_all(&downloads)?;
        download(&downloads)
            .context("there is no redis-server on this machine, and Debian's cannot be had")?;
        for package in fs::read_dir(&downloads)? {
            run(Command::new("dpkg").arg("-x").arg(package?.path()).arg(&folder))?;
        }
        fs::remove_dir_all(&downloads)?;
        Self::unpacked(&folder)
    }

    /// The server in `folder`, where packages were unpacked.
    fn unpacked(folder: &Path) -> Result<Self> {
        let mut libraries = OsString::new();
        // Debian has a folder for each kind of processor there.
        for entry in fs::read_dir(folder.join("usr/lib"))? {
            libraries.push(entry?.path());
            libraries.push(":");
        }
        Self::with(folder.join("usr/bin/redis-server"), libraries)
    }

    fn with(program: PathBuf, libraries: OsString) -> Result<Self> {
        let mut redis = Self { program, libraries, version: String::new() };
        let printed = capture(redis.call().arg("--version").stderr(Stdio::null()))?;
        let Some(version) = printed.split_whitespace().find_map(|word| word.strip_prefix("v=")) else {
            bail!("redis-server says no version: {printed}");
        };
        redis.version = version.to_owned();
        Ok(redis)
    }

    /// A server on `port` with its data in `folder`. Snapshots are off, as the append-only file has everything.
    pub fn server(&self, port: u16, folder: &Path) -> Command {
        let mut command = self.call();
        command.args(["--bind", "127.0.0.1", "--port", &port.to_string(), "--dir"]).arg(folder);
        command.args(["--appendonly", "yes", "--appendfsync", "everysec", "--save", ""]);
        command
    }

    fn call(&self) -> Command {
        let mut command = Command::new(&self.program);
        if !self.libraries.is_empty() {
            command.env("LD_LIBRARY_PATH", &self.libraries);
        }
        command
    }
}

/// Downloads the packages into `folder`. A new machine may have no list of packages yet, which only root can fetch.
fn download(folder: &Path) -> Result<()> {
    let packages =
        || run(Command::new("apt-get").args(["download", "--quiet"]).args(DEBIAN).current_dir(folder));
    if packages().is_ok() {
        return Ok(());
    }
    run(Command::new("apt-get").args(["update", "--quiet"]))?;
    packages()
}
