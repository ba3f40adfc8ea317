//! The folder of a run: data of servers, and what they and the players wrote. It is removed in the end.

use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::{env, fs, process};

use anyhow::{Context, Result};

/// A folder beside other temporary files: one under home could not be entered by the user that PostgreSQL runs as.
pub struct Scratch {
    folder: PathBuf,
    made: AtomicU32,
}

impl Scratch {
    /// # Errors
    /// When it cannot be made.
    pub fn new() -> Result<Self> {
        let folder = env::temp_dir().join(format!("tidegate-peers-{}", process::id()));
        fs::create_dir(&folder).with_context(|| format!("failed to make {}", folder.display()))?;
        let scratch = Self { folder, made: AtomicU32::new(0) };
        fs::set_permissions(scratch.path(), fs::Permissions::from_mode(0o711))?;
        Ok(scratch)
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.folder
    }

    /// A new folder in it, for one server.
    ///
    /// # Errors
    /// When it cannot be made.
    pub fn folder(&self, name: &str) -> Result<PathBuf> {
        let number = self.made.fetch_add(1, Ordering::Relaxed);
        let folder = self.folder.join(format!("{name}-{number}"));
        fs::create_dir(&folder).with_context(|| format!("failed to make {}", folder.display()))?;
        Ok(folder)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        if let Err(error) = fs::remove_dir_all(&self.folder) {
            eprintln!("failed to remove {}: {error}", self.folder.display());
        }
    }
}
