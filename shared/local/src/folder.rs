//! The data folder: where its files lie, and the lock that keeps a second process out.

use std::fs::{File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};

/// A data folder that belongs to this process until it is dropped, or the process ends in whatever way.
#[derive(Debug)]
pub(crate) struct Folder {
    path: PathBuf,
    _lock: File,
}

impl Folder {
    /// Creates the folder when missing, and takes it.
    ///
    /// # Errors
    /// `Ok(None)` when another process has it; otherwise what the file system says.
    pub(crate) fn take(path: &Path) -> io::Result<Option<Self>> {
        std::fs::create_dir_all(path)?;
        let lock =
            File::options().create(true).truncate(false).write(true).open(path.join("tidegate.lock"))?;
        match lock.try_lock() {
            Ok(()) => Ok(Some(Self { path: path.to_owned(), _lock: lock })),
            Err(TryLockError::WouldBlock) => Ok(None),
            Err(TryLockError::Error(error)) => Err(error),
        }
    }

    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }
}
