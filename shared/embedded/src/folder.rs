//! The data folder: where its files lie, who may read them, and the lock that keeps a second process out.
//!
//! The tables hold webhook secrets and payloads in clear, so folder and files are their owner's alone, whatever the umask
//! says. A folder that an earlier version made is mended when it is taken.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io;
use std::path::{Path, PathBuf};

use tracing::warn;

const LOCK: &str = "tidegate.lock";
/// The file of the tables.
pub(crate) const TABLES: &str = "dynamodb.db";
/// The file of the queues.
pub(crate) const QUEUES: &str = "sqs.db";
const ADMIN_KEY: &str = "admin-key";
const DEMO_KEY: &str = "demo-client-key";
const DEMO_BOOK: &str = "demo-book.jsonl";
/// The files beside tables and queues that a copy of the folder needs.
pub(crate) const KEPT_BESIDE: [&str; 3] = [ADMIN_KEY, DEMO_KEY, DEMO_BOOK];
/// What the names of files in a data folder begin with; SQLite adds endings to those of its files.
const OWN_NAMES: [&str; 7] = [LOCK, TABLES, QUEUES, ADMIN_KEY, DEMO_KEY, DEMO_BOOK, "running.json"];

/// What the answers of the services in a folder outlast.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Durability {
    /// The end of the process, whatever ends it. A power cut may take back the last moments, some tens of milliseconds where the
    /// disk keeps up, of tables and queues not the same ones.
    #[default]
    Process,
    /// A power cut too: what is written is on the disk before it is answered.
    Machine,
}

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
        create(path)?;
        let lock =
            open_private(OpenOptions::new().create(true).truncate(false).write(true), &path.join(LOCK))?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Ok(None),
            Err(TryLockError::Error(error)) => return Err(error),
        }
        mend(path)?;
        Ok(Some(Self { path: path.to_owned(), _lock: lock }))
    }

    /// Where it is.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// The file of the tables, there and private.
    pub(crate) fn tables(&self) -> io::Result<PathBuf> {
        self.database(TABLES)
    }

    /// The file of the queues, there and private.
    pub(crate) fn queues(&self) -> io::Result<PathBuf> {
        self.database(QUEUES)
    }

    /// SQLite takes an empty file for a new database, and gives the mode of the file to those that it puts beside it.
    fn database(&self, name: &str) -> io::Result<PathBuf> {
        let file = self.path.join(name);
        open_private(OpenOptions::new().create(true).truncate(false).write(true), &file)?;
        Ok(file)
    }
}

/// The address of a database in a folder, for SQLite: locked once for this process, not for each transaction. Any number of
/// connections of the process may use it side by side.
pub(crate) fn address(file: &Path) -> String {
    let path = file.to_string_lossy();
    match cfg!(unix) {
        true => {
            format!("file:{}?vfs=unix-excl", path.replace('%', "%25").replace('?', "%3f").replace('#', "%23"))
        }
        false => path.into_owned(),
    }
}

/// Whether a folder is a data folder: it has tables in it.
pub fn holds_data(folder: &Path) -> bool {
    folder.join(TABLES).is_file()
}

/// Opens a file that only its owner may read and write, also when it was there with another mode.
///
/// # Errors
/// What the file system says.
pub fn open_private(options: &mut OpenOptions, file: &Path) -> io::Result<File> {
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(options, 0o600);
    let opened = options.open(file)?;
    #[cfg(unix)]
    opened.set_permissions(std::os::unix::fs::PermissionsExt::from_mode(0o600))?;
    Ok(opened)
}

fn create(path: &Path) -> io::Result<()> {
    if path.is_dir() {
        return Ok(());
    }
    if let Some(parent) = path.parent() {
        fs::create_dir_all(parent)?;
    }
    let mut folder = fs::DirBuilder::new();
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut folder, 0o700);
    folder.create(path)
}

/// Makes private what an earlier version left readable. A folder that holds files of others keeps its own mode: it is not
/// ours to close.
#[cfg(unix)]
fn mend(path: &Path) -> io::Result<()> {
    use std::os::unix::fs::PermissionsExt as _;

    let mut shared = None;
    for entry in fs::read_dir(path)? {
        let entry = entry?;
        let name = entry.file_name();
        let is_own = |own: &str| name.to_str().is_some_and(|name| name.starts_with(own));
        if !OWN_NAMES.iter().any(|own| is_own(own)) {
            shared = Some(name);
        } else if entry.file_type()?.is_file() {
            fs::set_permissions(entry.path(), fs::Permissions::from_mode(0o600))?;
        }
    }
    match shared {
        None => fs::set_permissions(path, fs::Permissions::from_mode(0o700)),
        Some(other) if fs::metadata(path)?.permissions().mode() & 0o077 != 0 => {
            let (folder, other) = (path.display(), other.display());
            warn!(%folder, %other, "others may list the data folder: it holds files that are not Tidegate's; its own are private");
            Ok(())
        }
        Some(_) => Ok(()),
    }
}

#[cfg(not(unix))]
fn mend(_: &Path) -> io::Result<()> {
    Ok(())
}

#[cfg(test)]
#[cfg(unix)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).unwrap().permissions().mode() & 0o777
    }

    #[test]
    fn a_folder_made_earlier_is_closed_with_all_files_of_ours() {
        let scratch = tempfile::tempdir().unwrap();
        let path = scratch.path().join("deep/data");
        fs::create_dir_all(&path).unwrap();
        for name in [TABLES, "dynamodb.db-wal", QUEUES, "demo-book.jsonl"] {
            fs::write(path.join(name), "").unwrap();
            fs::set_permissions(path.join(name), fs::Permissions::from_mode(0o644)).unwrap();
        }
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        drop(Folder::take(&path).unwrap().unwrap());
        assert_eq!(mode(&path), 0o700);
        for entry in fs::read_dir(&path).unwrap() {
            let file = entry.unwrap().path();
            assert_eq!(mode(&file), 0o600, "{}", file.display());
        }
    }

    #[test]
    fn a_folder_of_others_stays_open_and_only_our_files_are_closed() {
        let scratch = tempfile::tempdir().unwrap();
        let (theirs, ours) = (scratch.path().join("notes.txt"), scratch.path().join(TABLES));
        for file in [&theirs, &ours] {
            fs::write(file, "").unwrap();
            fs::set_permissions(file, fs::Permissions::from_mode(0o644)).unwrap();
        }
        fs::set_permissions(scratch.path(), fs::Permissions::from_mode(0o755)).unwrap();
        drop(Folder::take(scratch.path()).unwrap().unwrap());
        assert_eq!((mode(scratch.path()), mode(&theirs), mode(&ours)), (0o755, 0o644, 0o600));
    }
}
