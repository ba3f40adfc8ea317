//! The embedded DynamoDB: the library's typed operations behind the JSON protocol, with every request metered.
//!
//! Serves the operations that the store and its tests use. It does not serve PartiQL, streams, backups or tags, and says
//! so with `UnknownOperationException`.

mod capacity;
mod direct;
mod dispatch;
mod handed_over;
mod refusal;
mod writer;

use std::path::Path;
use std::sync::Arc;

use dynoxide::Database;
use tidegate_domain::clock::Clock;

use crate::folder::{self, Durability};
use crate::meter::Meter;
use crate::reply::Reply;
use direct::Reader;
use writer::Writer;

/// The token that the SDK gives to a transaction whose caller gave none: told apart here, it becomes one that fits (see
/// `Seam::transaction_token`).
pub(crate) const SDK_TOKEN: &str = "sdk";

/// One embedded DynamoDB.
pub(crate) struct DynamoDb {
    db: Database,
    /// What tables in a file have beside the library.
    file: Option<InFile>,
}

/// Connections to tables in a file.
struct InFile {
    /// Makes the writes, as a commit costs something here.
    writer: Arc<Writer>,
    reader: Reader,
}

impl DynamoDb {
    /// Empty tables in memory; TTL by `clock`.
    pub(crate) fn in_memory(clock: Arc<dyn Clock>) -> Result<Self, dynoxide::DynoxideError> {
        Ok(Self { db: Database::memory_with_clock(Arc::new(UnixClock(clock)))?, file: None })
    }

    /// The tables in `file`, created when missing. The library offers no other clock than the machine's here, so TTL goes
    /// by that.
    pub(crate) fn open(file: &Path, durability: Durability) -> Result<Self, dynoxide::DynoxideError> {
        let address = folder::address(file);
        let db = Database::new(&address)?;
        match durability {
            // The pair leaves the file at `synchronous=NORMAL`.
            Durability::Process => {
                db.enable_bulk_loading()?;
                db.disable_bulk_loading()?;
            }
            // The library leaves it at SQLite's own `synchronous=FULL`.
            Durability::Machine => {}
        }
        let writer = Writer::open(file, durability)?;
        let file = InFile { writer, reader: Reader::open(&address)? };
        Ok(Self { db, file: Some(file) })
    }

    /// Serves one request. `token` takes the place of the token that the SDK makes for a transaction without one. In memory
    /// it waits for nothing.
    pub(crate) async fn call(
        &self,
        operation: &str,
        body: &[u8],
        token: Option<String>,
        meter: &Meter,
    ) -> Reply {
        dispatch::serve((&self.db, self.file.as_ref()), operation, body, token, meter).await
    }

    /// Does `work` while nothing is written to the tables of a folder; what is to be written meanwhile waits.
    pub(crate) fn while_held<R>(&self, work: impl FnOnce() -> rusqlite::Result<R>) -> rusqlite::Result<R> {
        match &self.file {
            Some(file) => file.writer.while_held(work),
            None => work(),
        }
    }

    /// Deletes the items whose TTL has passed; returns how many.
    pub(crate) fn sweep_ttl(&self) -> Result<usize, dynoxide::DynoxideError> {
        self.db.sweep_ttl()
    }
}

/// Our clock, as the library reads it.
struct UnixClock(Arc<dyn Clock>);

impl dynoxide::storage_backend::Clock for UnixClock {
    fn now_unix_secs(&self) -> u64 {
        u64::try_from(self.0.now().timestamp()).unwrap_or_default()
    }

    fn now_unix_secs_f64(&self) -> f64 {
        self.0.now().timestamp_millis() as f64 / 1000.0
    }
}
