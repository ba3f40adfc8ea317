//! Where the `tidegate local` that has a data folder is reached by other commands of the folder's owner: a file in it says so.
//!
//! Whoever reads the file can read all data beside it, so its key proves nobody more than the folder does. The key lives as
//! long as its process: one that a process left behind opens nothing.

use std::fs::{self, OpenOptions};
use std::io::{self, Write as _};
use std::path::Path;

use anyhow::Context as _;
use serde::{Deserialize, Serialize};
use tidegate_embedded::open_private;

/// The file in the data folder.
const FILE: &str = "running.json";

/// A process that has a data folder.
#[derive(Serialize, Deserialize)]
pub(crate) struct Running {
    /// Where its API is.
    pub(crate) api: String,
    /// Says that a request is of the folder's owner.
    pub(crate) owner_key: String,
}

impl Running {
    /// Says it in the folder. Only for the process that holds the folder's lock.
    pub(crate) fn keep(&self, folder: &Path) -> anyhow::Result<()> {
        let file = folder.join(FILE);
        let text = serde_json::to_string(self)?;
        let opened = open_private(OpenOptions::new().write(true).create(true).truncate(true), &file);
        let written = opened.and_then(|mut file| file.write_all(text.as_bytes()));
        written.with_context(|| format!("failed to write {}", file.display()))
    }

    /// What the last process said in the folder; `None` when none did, or not to the end.
    pub(crate) fn read(folder: &Path) -> anyhow::Result<Option<Self>> {
        let file = folder.join(FILE);
        match fs::read(&file) {
            Ok(text) => Ok(serde_json::from_slice(&text).ok()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error).with_context(|| format!("failed to read {}", file.display())),
        }
    }
}
