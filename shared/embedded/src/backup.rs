//! A copy of the data folder, made while requests are served.
//!
//! Tables and queues are copied as of one instant: both are held while a transaction begins on each that only reads, which
//! takes a moment, and what is copied afterwards is what those two see. So the copy is what the folder would be if the process
//! had died at that instant. It gets its name last, once all of it is on the disk.
//!
//! Deliberately absent: when copies are made, and how many are kept.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::path::{self, Path, PathBuf};

use chrono::{DateTime, Utc};
use rusqlite::{Connection, MAIN_DB};
use tempfile::TempDir;

use crate::connector::Services;
use crate::folder::{self, Folder, KEPT_BESIDE, QUEUES, TABLES, open_private};

/// A copy that was made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Backup {
    /// The instant that it is of: what was answered before is in it.
    pub as_of: DateTime<Utc>,
    /// How large its tables and queues are together.
    pub bytes: u64,
}

/// Why there is no copy.
#[derive(Debug, thiserror::Error)]
pub enum BackupError {
    /// There is no data folder.
    #[error("there is no data folder to back up: the data is in memory")]
    InMemory,
    /// Something else is where the copy is to be.
    #[error("{0} is there and is no empty folder: name one that does not exist, or is empty")]
    Taken(PathBuf),
    /// The copy would be a part of what it is a copy of.
    #[error("{0} lies in the data folder: name a folder outside of it")]
    Within(PathBuf),
    /// The copy cannot be written.
    #[error("failed to write the backup to {0}: {1}")]
    Folder(PathBuf, #[source] io::Error),
    /// The tables or the queues cannot be copied.
    #[error("failed to copy the tables and queues: {0}")]
    Database(#[from] rusqlite::Error),
}

/// Copies the data folder of `services` to `to`.
pub(crate) fn back_up(services: &Services, to: &Path) -> Result<Backup, BackupError> {
    let folder = services.folder.as_ref().ok_or(BackupError::InMemory)?;
    let failed = |error| BackupError::Folder(to.to_owned(), error);
    let to = path::absolute(to).map_err(failed)?;
    check(folder, &to)?;
    let unfinished = unfinished(&to).map_err(failed)?;
    let snapshots = Snapshots::take(services, folder)?;
    let bytes = snapshots.write(unfinished.path(), failed)?;
    copy_beside(folder.path(), unfinished.path()).map_err(failed)?;
    finish(unfinished, &to).map_err(failed)?;
    Ok(Backup { as_of: snapshots.as_of, bytes })
}

fn check(folder: &Folder, to: &Path) -> Result<(), BackupError> {
    let failed = |error| BackupError::Folder(to.to_owned(), error);
    if to.starts_with(path::absolute(folder.path()).map_err(failed)?) {
        return Err(BackupError::Within(to.to_owned()));
    }
    match fs::read_dir(to).map(|mut entries| entries.next().is_none()) {
        Ok(true) => Ok(()),
        Ok(false) => Err(BackupError::Taken(to.to_owned())),
        Err(error) => match error.kind() {
            io::ErrorKind::NotFound => Ok(()),
            io::ErrorKind::NotADirectory => Err(BackupError::Taken(to.to_owned())),
            _ => Err(failed(error)),
        },
    }
}

/// A folder for the copy while it is made, beside where it is to be, for its owner alone. It is removed unless the copy is
/// finished; what a process leaves that dies meanwhile is called `.<name>.unfinished-` and six random characters.
fn unfinished(to: &Path) -> io::Result<TempDir> {
    let (Some(parent), Some(name)) = (to.parent(), to.file_name()) else {
        return Err(io::ErrorKind::InvalidFilename.into());
    };
    fs::create_dir_all(parent)?;
    let prefix = format!(".{}.unfinished-", name.to_string_lossy());
    let mut builder = tempfile::Builder::new();
    builder.prefix(&prefix);
    #[cfg(unix)]
    builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o700));
    builder.tempdir_in(parent)
}

/// Tables and queues as of one instant.
struct Snapshots {
    tables: Connection,
    queues: Connection,
    as_of: DateTime<Utc>,
}

impl Snapshots {
    fn take(services: &Services, folder: &Folder) -> rusqlite::Result<Self> {
        // By their addresses alone: a file that is opened and closed past SQLite takes SQLite's locks with it.
        let open = |name| Connection::open(folder::address(&folder.path().join(name)));
        let (tables, queues) = (open(TABLES)?, open(QUEUES)?);
        let as_of = services.dynamodb.while_held(|| {
            services.sqs.while_held(|now| {
                for database in [&tables, &queues] {
                    // SQLite decides what a transaction sees when it first reads.
                    database.execute_batch("BEGIN; SELECT count(*) FROM sqlite_schema")?;
                }
                Ok(now)
            })
        })?;
        Ok(Self { tables, queues, as_of })
    }

    /// Writes both into a folder, down to the disk; returns how large they are.
    fn write(&self, into: &Path, failed: impl Fn(io::Error) -> BackupError) -> Result<u64, BackupError> {
        let mut bytes = 0;
        for (database, name) in [(&self.tables, TABLES), (&self.queues, QUEUES)] {
            let file = into.join(name);
            let copy = open_private(OpenOptions::new().create_new(true).write(true), &file);
            let copy = copy.map_err(&failed)?;
            database.backup(MAIN_DB, &file, None)?;
            copy.sync_all().map_err(&failed)?;
            bytes += copy.metadata().map_err(&failed)?.len();
        }
        Ok(bytes)
    }
}

/// Copies the keys, and what the demo remembers. After tables and queues: what they know of has happened here too.
fn copy_beside(folder: &Path, into: &Path) -> io::Result<()> {
    for name in KEPT_BESIDE {
        let mut kept = match File::open(folder.join(name)) {
            Ok(kept) => kept,
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            Err(error) => return Err(error),
        };
        let mut copy = open_private(OpenOptions::new().create_new(true).write(true), &into.join(name))?;
        io::copy(&mut kept, &mut copy)?;
        copy.sync_all()?;
    }
    Ok(())
}

/// Gives a copy its name.
fn finish(unfinished: TempDir, to: &Path) -> io::Result<()> {
    sync(unfinished.path())?;
    if to.is_dir() {
        // Fails unless it is empty.
        fs::remove_dir(to)?;
    }
    fs::rename(unfinished.path(), to)?;
    let _renamed = unfinished.keep();
    to.parent().map_or(Ok(()), sync)
}

/// Has the disk know the names in a folder.
#[cfg(unix)]
fn sync(folder: &Path) -> io::Result<()> {
    File::open(folder)?.sync_all()
}

#[cfg(not(unix))]
fn sync(_: &Path) -> io::Result<()> {
    Ok(())
}
