//! What is read once: tables, and names that may stand in expressions.
//!
//! Invariant: a table in a file stays as it was made. Each of the library's connections keeps what it has read of one, too.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard};

use super::table::Plain;

/// Names that are kept at the most: those of ours are some hundreds.
const NAMES: usize = 4096;

/// Names of attributes.
pub(in crate::dynamodb) type Names = HashSet<Arc<str>>;

/// What has been seen of the tables of a file.
#[derive(Default)]
pub(super) struct Known {
    /// Names that the library has taken in an expression as they are: none of them is a reserved word.
    names: RwLock<Names>,
    tables: RwLock<HashMap<String, Arc<Plain>>>,
}

impl Known {
    pub(super) fn names(&self) -> RwLockReadGuard<'_, Names> {
        self.names.read().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn add_names(&self, names: Names) {
        let mut known = self.names.write().unwrap_or_else(PoisonError::into_inner);
        if known.len() < NAMES {
            known.extend(names);
        }
    }

    /// The table with this name, if there is one and it is plain: `read` is asked the first time.
    pub(super) fn table(&self, name: &str, read: impl FnOnce() -> Option<Plain>) -> Option<Arc<Plain>> {
        if let Some(table) = self.tables.read().unwrap_or_else(PoisonError::into_inner).get(name) {
            return Some(Arc::clone(table));
        }
        let table = Arc::new(read()?);
        let mut known = self.tables.write().unwrap_or_else(PoisonError::into_inner);
        known.insert(name.to_owned(), Arc::clone(&table));
        Some(table)
    }
}
