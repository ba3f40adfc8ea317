//! How what is committed comes to the disk.
//!
//! Where no commit waits for the disk, SQLite syncs its log only before it moves the pages of the log into the database: a thousand
//! of them at once, some 20 ms in which nobody writes. So the log is synced soon after it was written, while nobody waits: what is
//! on the disk by then takes no time, and a power cut takes back less.

use std::fs::OpenOptions;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::Duration;

use rusqlite::Connection;
use tokio::runtime::Handle;
use tokio::task::spawn_blocking;
use tokio::time::sleep;
use tracing::warn;

use crate::folder::Durability;

/// How long after a write the log is synced.
const SYNCED_AFTER: Duration = Duration::from_millis(20);

/// All that was written is on the disk, or nobody has seen to it yet.
const IDLE: u8 = 0;
/// Somebody is about to sync.
const DUE: u8 = 1;
/// Somebody syncs, and nothing was written since.
const SYNCING: u8 = 2;

/// The log of a database.
struct Log {
    file: PathBuf,
    state: AtomicU8,
}

/// Sees to it that what `conn` commits to the database in `file` comes to the disk: before the commit ends, or soon after it.
pub(crate) fn keep(conn: &Connection, (file, durability): (&Path, Durability)) -> rusqlite::Result<()> {
    match durability {
        Durability::Process => {
            conn.pragma_update(None, "synchronous", "NORMAL")?;
            Log::of(file).follow(conn);
            Ok(())
        }
        Durability::Machine => conn.pragma_update(None, "synchronous", "FULL"),
    }
}

impl Log {
    fn of(database: &Path) -> Arc<Self> {
        let mut file = database.as_os_str().to_owned();
        file.push("-wal");
        Arc::new(Self { file: file.into(), state: AtomicU8::new(IDLE) })
    }

    /// Is synced soon after each commit of `conn`. Outside of a runtime the system does it when it sees fit.
    fn follow(self: &Arc<Self>, conn: &Connection) {
        let log = Arc::clone(self);
        conn.commit_hook(Some(move || {
            if log.state.swap(DUE, Ordering::AcqRel) == IDLE {
                match Handle::try_current() {
                    Ok(runtime) => drop(runtime.spawn(Arc::clone(&log).sync_until_idle())),
                    Err(_) => log.state.store(IDLE, Ordering::Release),
                }
            }
            // It may be committed.
            false
        }));
    }

    async fn sync_until_idle(self: Arc<Self>) {
        loop {
            sleep(SYNCED_AFTER).await;
            self.state.store(SYNCING, Ordering::Release);
            let log = Arc::clone(&self);
            if let Ok(Err(error)) = spawn_blocking(move || log.sync()).await {
                warn!(%error, log = %self.file.display(), "the log was not synced");
            }
            if self.ends() {
                return;
            }
        }
    }

    /// Whether nothing was written since syncing began, so that who syncs is done.
    fn ends(&self) -> bool {
        self.state.compare_exchange(SYNCING, IDLE, Ordering::AcqRel, Ordering::Acquire).is_ok()
    }

    fn sync(&self) -> io::Result<()> {
        match OpenOptions::new().write(true).open(&self.file) {
            // SQLite has removed it with its last connection, or not made it yet.
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            opened => opened?.sync_data(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A database in a file, and its log.
    fn database(folder: &tempfile::TempDir) -> (Connection, Arc<Log>) {
        let file = folder.path().join("rows.db");
        let conn = Connection::open(&file).unwrap();
        conn.pragma_update(None, "journal_mode", "WAL").unwrap();
        conn.execute_batch("CREATE TABLE numbers (number INTEGER)").unwrap();
        let log = Log::of(&file);
        log.follow(&conn);
        (conn, log)
    }

    fn state(log: &Log) -> u8 {
        log.state.load(Ordering::Acquire)
    }

    #[tokio::test(start_paused = true)]
    async fn a_log_is_synced_soon_after_commits() {
        let folder = tempfile::tempdir().unwrap();
        let (conn, log) = database(&folder);
        for _ in 0..2 {
            conn.execute_batch("INSERT INTO numbers VALUES (1); INSERT INTO numbers VALUES (2)").unwrap();
            assert_eq!(state(&log), DUE);
            sleep(SYNCED_AFTER / 2).await;
            assert_eq!(state(&log), DUE);
            sleep(SYNCED_AFTER).await;
            assert_eq!(state(&log), IDLE);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_committed_while_a_log_is_synced_is_synced_next() {
        let folder = tempfile::tempdir().unwrap();
        let (conn, log) = database(&folder);
        log.state.store(SYNCING, Ordering::Release);
        conn.execute_batch("INSERT INTO numbers VALUES (1)").unwrap();
        assert_eq!(state(&log), DUE);
        assert!(!log.ends());
        Arc::clone(&log).sync_until_idle().await;
        assert_eq!(state(&log), IDLE);
    }

    #[test]
    fn without_a_runtime_and_without_a_log_there_is_nothing_to_do() {
        let folder = tempfile::tempdir().unwrap();
        let (conn, log) = database(&folder);
        conn.execute_batch("INSERT INTO numbers VALUES (1)").unwrap();
        assert_eq!(state(&log), IDLE);
        assert!(log.sync().is_ok());
        drop(conn);
        assert!(!log.file.exists());
        assert!(log.sync().is_ok());
    }
}
