//! Keys that are made here and kept in the data folder, for its owner's eyes only.

use std::fs::{self, OpenOptions};
use std::io::{self, Write as _};
use std::path::Path;

use anyhow::Context as _;
use tidegate_embedded::open_private;

/// A key that nobody can guess: what its kind begins with, and 64 hexadecimal digits.
pub(crate) fn new(prefix: &str) -> anyhow::Result<String> {
    let mut bytes = [0; 32];
    getrandom::fill(&mut bytes).context("failed to draw a key")?;
    Ok(bytes.iter().fold(prefix.to_owned(), |key, byte| format!("{key}{byte:02x}")))
}

/// A key that was kept; `None` when none was, or the process died before it was whole.
pub(crate) fn read(file: &Path) -> anyhow::Result<Option<String>> {
    match fs::read_to_string(file) {
        // The line's end is written last.
        Ok(text) => Ok(text.strip_suffix('\n').filter(|key| !key.is_empty()).map(str::to_owned)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error).with_context(|| format!("failed to read {}", file.display())),
    }
}

/// Keeps a key in a file that only the owner can read.
pub(crate) fn keep(file: &Path, key: &str) -> anyhow::Result<()> {
    let opened = open_private(OpenOptions::new().write(true).create(true).truncate(true), file);
    let written = opened.and_then(|mut file| file.write_all(format!("{key}\n").as_bytes()));
    written.with_context(|| format!("failed to keep a key in {}", file.display()))
}
