//! The SQLite form of the queues, and how a connection to it is set up.
//!
//! A row of `messages` has one message, or several that were sent together ([`super::bundle`]).
//!
//! A message of a standard queue is *ready* (it has a rank, its turn among the message groups) or *waiting* (delayed or in
//! flight, until an instant). A message of a FIFO queue stands in its group's line; the group, not the message, has the
//! instant from which it can be received. Every read of the hot path is one range of one partial index.

use std::path::Path;

use rusqlite::Connection;
use rusqlite::config::DbConfig;
use rusqlite::types::Type;

use crate::disk;
use crate::folder::{self, Durability};

/// Ready to be received: a standard queue's message with a rank.
pub(super) const READY: i64 = 0;
/// Delayed or in flight: a standard queue's message that becomes ready at `visible_at_ms`.
pub(super) const WAITING: i64 = 1;
/// A FIFO queue's message, in the line of its group.
pub(super) const IN_LINE: i64 = 2;

const TABLES: &str = "
CREATE TABLE IF NOT EXISTS queues (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    name TEXT NOT NULL UNIQUE,
    attributes TEXT NOT NULL,
    tags TEXT NOT NULL,
    created_at_ms INTEGER NOT NULL,
    modified_at_ms INTEGER NOT NULL,
    purged_at_ms INTEGER NOT NULL DEFAULT 0
);
CREATE TABLE IF NOT EXISTS messages (
    seq INTEGER PRIMARY KEY,
    queue_id INTEGER NOT NULL,
    state INTEGER NOT NULL,
    rank INTEGER NOT NULL,
    visible_at_ms INTEGER NOT NULL,
    receive_count INTEGER NOT NULL,
    received_at_ms INTEGER NOT NULL,
    first_received_at_ms INTEGER NOT NULL,
    sent_at_ms INTEGER NOT NULL,
    message_id BLOB NOT NULL,
    group_id TEXT,
    dedup_id TEXT,
    trace TEXT,
    source_arn TEXT,
    attributes TEXT,
    body TEXT NOT NULL,
    count INTEGER NOT NULL DEFAULT 1,
    cuts TEXT
);
CREATE INDEX IF NOT EXISTS ready ON messages (queue_id, rank, seq, count) WHERE state = 0;
CREATE INDEX IF NOT EXISTS waiting ON messages (queue_id, visible_at_ms, seq) WHERE state = 1;
CREATE INDEX IF NOT EXISTS line ON messages (queue_id, group_id, seq) WHERE state = 2;
CREATE INDEX IF NOT EXISTS taken ON messages (queue_id, group_id, visible_at_ms) WHERE state = 2 AND receive_count > 0;
CREATE TABLE IF NOT EXISTS groups (
    queue_id INTEGER NOT NULL,
    group_id TEXT NOT NULL,
    ready_at_ms INTEGER NOT NULL,
    PRIMARY KEY (queue_id, group_id)
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS group_ready ON groups (queue_id, ready_at_ms);
CREATE TABLE IF NOT EXISTS deduplication (
    queue_id INTEGER NOT NULL,
    scope TEXT NOT NULL,
    dedup_id TEXT NOT NULL,
    until_ms INTEGER NOT NULL,
    seq INTEGER NOT NULL,
    message_id BLOB NOT NULL,
    PRIMARY KEY (queue_id, scope, dedup_id)
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS deduplication_end ON deduplication (until_ms);
PRAGMA user_version = 1;
";

/// Whether the table of messages is there, without the number of messages in a row.
const IS_OF_FIRST_FORM: &str =
    "SELECT count(*) > 0 AND coalesce(sum(name = 'count'), 0) = 0 FROM pragma_table_info('messages')";

/// From the first form: a row had one message. An older version, in between, leaves what is new as it is.
const FROM_FIRST_FORM: &str = "
BEGIN;
ALTER TABLE messages ADD COLUMN count INTEGER NOT NULL DEFAULT 1;
ALTER TABLE messages ADD COLUMN cuts TEXT;
DROP INDEX IF EXISTS ready;
COMMIT;
";

/// A connection with the tables in place: to a file, or in memory.
pub(super) fn connect(file: Option<(&Path, Durability)>) -> rusqlite::Result<Connection> {
    let conn = match file {
        Some((file, _)) => Connection::open(folder::address(file))?,
        None => Connection::open_in_memory()?,
    };
    conn.pragma_update(None, "journal_mode", "WAL")?;
    if let Some(file) = file {
        disk::keep(&conn, file)?;
    }
    conn.pragma_update(None, "temp_store", "MEMORY")?;
    conn.pragma_update(None, "cache_size", -8000)?;
    // Otherwise a kept statement whose plan looks at a parameter, as that of a `LIMIT ?`, is prepared anew at each use.
    conn.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
    conn.set_prepared_statement_cache_capacity(64);
    if conn.query_row(IS_OF_FIRST_FORM, [], |row| row.get(0))? {
        conn.execute_batch(FROM_FIRST_FORM)?;
    }
    conn.execute_batch(TABLES)?;
    Ok(conn)
}

/// What is told of a column that does not hold what is stored there.
pub(super) fn unreadable(column: usize) -> rusqlite::Error {
    rusqlite::Error::FromSqlConversionFailure(column, Type::Text, "not as it was stored".into())
}

#[cfg(test)]
mod tests {
    use rusqlite::{StatementStatus, params};

    use super::*;

    #[test]
    fn a_statement_that_is_kept_is_prepared_once() {
        let conn = connect(None).unwrap();
        let sql = "SELECT seq FROM messages WHERE queue_id = ?1 AND state = 0 ORDER BY rank, seq LIMIT ?2";
        for most in [1, 2, 3] {
            let mut statement = conn.prepare_cached(sql).unwrap();
            let found = statement.query_map(params![1, most], |row| row.get::<_, i64>(0)).unwrap();
            assert_eq!(found.count(), 0);
        }
        let statement = conn.prepare_cached(sql).unwrap();
        assert_eq!(statement.get_status(StatementStatus::RePrepare), 0);
    }
}
