//! The plain requests on tables in a file, past the library: rows by their keys, rows that are put or deleted whole, and rows
//! that are updated.
//!
//! The library prepares each statement anew, reads each expression three times, and makes values of what is sent and stored only to make
//! JSON of them again. What has neither a projection nor an index needs none of it. Whatever is not plain, is wrong, or fails is
//! left to the library, which answers as if this were not here; that both answer alike is tested.

mod expression;
mod known;
mod rows;
mod table;
mod update;
mod value;

use std::collections::HashSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use dynoxide::actions::batch_get_item::BatchGetItemRequest;
use dynoxide::actions::get_item::GetItemRequest;
use dynoxide::storage::Storage;
use dynoxide::types::{self, AttributeValue, Item};

use crate::meter::Units;

use known::{Known, Names};
pub(super) use rows::RowWrites;
use table::{Place, Plain};
pub(super) use update::Update;
pub(super) use value::attributes;

const ROWS_PER_BATCH_READ: usize = 100;
/// The most that a batch read answers with, in bytes.
const ANSWER_BYTES: usize = 16 * 1024 * 1024;
/// Statements that are kept: a few for each table.
const KEPT_STATEMENTS: usize = 64;

/// A connection that reads.
pub(super) struct Reader {
    storage: Mutex<Storage>,
    known: Known,
}

/// What a request is answered with, and the units of each table.
pub(super) struct Served<A = Vec<u8>> {
    pub(super) answer: A,
    pub(super) units: Vec<(String, Units)>,
}

impl Reader {
    /// A connection to the tables at `address`.
    pub(super) fn open(address: &str) -> dynoxide::Result<Self> {
        let storage = Storage::new(address)?;
        keep_statements(&storage);
        Ok(Self { storage: Mutex::new(storage), known: Known::default() })
    }

    fn storage(&self) -> MutexGuard<'_, Storage> {
        self.storage.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The table with this name, if there is one and it is plain.
    fn table(&self, name: &str) -> Option<Arc<Plain>> {
        self.known.table(name, || Plain::of(&self.storage(), name))
    }

    /// Notes that the library has taken names in an expression as they are.
    pub(super) fn learn_names(&self, names: Names) {
        self.known.add_names(names);
    }

    /// Nothing when the library is to answer.
    pub(super) fn get_item(&self, request: &GetItemRequest) -> Option<Served> {
        let names_attributes = request.projection_expression.is_some()
            || request.expression_attribute_names.is_some()
            || request.attributes_to_get.is_some();
        if names_attributes {
            return None;
        }
        let table = self.table(&request.table_name)?;
        let row = table.row(&self.storage(), &place_of(&table, &request.key)?)?;
        let size = row.as_ref().map_or(0, |(_, size)| *size);
        let read =
            types::read_capacity_units_with_consistency(size, request.consistent_read.unwrap_or(false));
        let body = match row {
            Some((json, _)) => format!(r#"{{"Item":{json}}}"#).into_bytes(),
            None => b"{}".to_vec(),
        };
        Some(Served { answer: body, units: vec![(request.table_name.clone(), Units { write: 0.0, read })] })
    }

    /// Nothing when the library is to answer.
    pub(super) fn batch_get_item(&self, request: &BatchGetItemRequest) -> Option<Served> {
        let tables = &request.request_items;
        if tables.values().map(|asked| asked.keys.len()).sum::<usize>() > ROWS_PER_BATCH_READ {
            return None;
        }
        let mut units = Vec::with_capacity(tables.len());
        let (mut body, mut bytes) = (br#"{"Responses":{"#.to_vec(), 0);
        for (number, (name, asked)) in tables.iter().enumerate() {
            let names_attributes = asked.projection_expression.is_some()
                || asked.expression_attribute_names.is_some()
                || asked.attributes_to_get.is_some();
            if names_attributes || asked.keys.is_empty() {
                return None;
            }
            let table = self.table(name)?;
            let storage = self.storage();
            let consistent = asked.consistent_read.unwrap_or(false);
            body.extend(if number == 0 { "" } else { "," }.bytes());
            serde_json::to_writer(&mut body, name).ok()?;
            body.extend(b":[");
            let (mut read, mut places, mut separator) = (0.0, HashSet::new(), "");
            for key in &asked.keys {
                let place = place_of(&table, key)?;
                let row = table.row(&storage, &place)?;
                if !places.insert(place) {
                    return None;
                }
                let size = row.as_ref().map_or(0, |(_, size)| *size);
                read += types::read_capacity_units_with_consistency(size, consistent);
                bytes += size;
                let Some((json, _)) = row else { continue };
                body.extend(separator.bytes());
                body.extend(json.into_bytes());
                separator = ",";
            }
            if bytes > ANSWER_BYTES {
                return None;
            }
            body.extend(b"]");
            units.push((name.clone(), Units { write: 0.0, read }));
        }
        body.extend(br#"},"UnprocessedKeys":{}}"#);
        (!units.is_empty()).then_some(Served { answer: body, units })
    }
}

/// The place of the row with a key as the library reads it.
fn place_of(table: &Plain, key: &Item) -> Option<Place> {
    table.place_of_key(key.len(), |name| match key.get(name) {
        Some(AttributeValue::S(text)) => Some(text.as_str()),
        _ => None,
    })
}

/// Lets a connection keep the statements of [`Plain`].
pub(super) fn keep_statements(storage: &Storage) {
    storage.conn().set_prepared_statement_cache_capacity(KEPT_STATEMENTS);
}

#[cfg(test)]
mod tests;
