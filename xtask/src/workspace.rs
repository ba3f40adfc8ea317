//! Where things lie: the checkout, cargo's target folder and the cache for tools.

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};
use serde_json::Value;

use crate::command::capture;

/// The checkout this recipe runs in.
pub struct Workspace {
    root: PathBuf,
    target: PathBuf,
    cache: PathBuf,
    metadata: Value,
}

impl Workspace {
    /// Finds the checkout from what cargo tells a program that it runs.
    pub fn find() -> Result<Self> {
        let manifest = env::var_os("CARGO_MANIFEST_DIR").context("run this as `cargo xtask`")?;
        let root = Path::new(&manifest).parent().context("xtask is not in a workspace")?.to_owned();
        let cache = match env::var_os("TIDEGATE_CACHE") {
            Some(cache) => PathBuf::from(cache),
            None => PathBuf::from(env::var_os("HOME").context("HOME is not set")?).join(".cache/tidegate"),
        };
        let mut command = Command::new(cargo_program());
        command.args(["metadata", "--format-version", "1", "--locked"]).current_dir(&root);
        let metadata: Value = serde_json::from_str(&capture(&mut command)?)?;
        let target = metadata["target_directory"].as_str().context("cargo names no target folder")?.into();
        Ok(Self { root, target, cache, metadata })
    }

    /// The folder with the workspace's `Cargo.toml`.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Where cargo builds; also home of what one end-to-end run leaves behind.
    pub fn target(&self) -> &Path {
        &self.target
    }

    /// Where tools and virtual environments are kept from run to run: `TIDEGATE_CACHE`, or a folder under home.
    pub fn cache(&self) -> &Path {
        &self.cache
    }

    /// What `cargo metadata` says of the workspace and its dependencies.
    pub fn metadata(&self) -> &Value {
        &self.metadata
    }
}

/// The cargo that started this recipe.
pub fn cargo_program() -> std::ffi::OsString {
    env::var_os("CARGO").unwrap_or_else(|| "cargo".into())
}

/// A cargo call in the workspace's root.
pub fn cargo(workspace: &Workspace) -> Command {
    let mut command = Command::new(cargo_program());
    command.current_dir(workspace.root());
    command
}
