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

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use aws_sdk_dynamodb::operation::batch_get_item::builders::BatchGetItemInputBuilder;
use dynoxide::actions::batch_get_item::BatchGetItemRequest;
use dynoxide::actions::get_item::GetItemRequest;
use dynoxide::storage::Storage;
use dynoxide::types::{self, AttributeValue, Item};

use crate::meter::Units;

use known::{Known, Names};
pub(super) use rows::RowWrites;
use table::{Place, Plain};
pub(super) use update::Update;
pub(super) use value::{Attributes, attributes};

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

/// Whether a read names no attributes: one of the library's, or one that is handed over, which have the same fields.
macro_rules! wants_whole_rows {
    ($read:expr) => {
        $read.projection_expression.is_none()
            && $read.expression_attribute_names.is_none()
            && $read.attributes_to_get.is_none()
    };
}

/// What a batch read asks for of a table.
struct Keys<'k, K> {
    table: &'k str,
    keys: &'k [K],
    consistent: bool,
}

/// The JSON of rows by the names of their tables.
type Rows<'k> = Vec<(&'k str, Vec<String>)>;

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
        if !wants_whole_rows!(request) {
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
        let asked = request.request_items.iter().map(|(name, asked)| {
            let consistent = asked.consistent_read.unwrap_or(false);
            wants_whole_rows!(asked).then_some(Keys { table: name, keys: &asked.keys, consistent })
        });
        let Served { answer: tables, units } = self.read_batch(asked, place_of)?;
        let mut body = br#"{"Responses":{"#.to_vec();
        for (number, (name, rows)) in tables.into_iter().enumerate() {
            body.extend(if number == 0 { "" } else { "," }.bytes());
            serde_json::to_writer(&mut body, name).ok()?;
            body.extend(b":[");
            let mut separator = "";
            for json in rows {
                body.extend(separator.bytes());
                body.extend(json.into_bytes());
                separator = ",";
            }
            body.extend(b"]");
        }
        body.extend(br#"},"UnprocessedKeys":{}}"#);
        Some(Served { answer: body, units })
    }

    /// Nothing when it is to be made as a request.
    pub(super) fn batch_get_call(
        &self,
        call: &BatchGetItemInputBuilder,
    ) -> Option<Served<HashMap<String, Vec<Attributes>>>> {
        let asks_for_more = call.get_return_consumed_capacity().is_some();
        let asked = call.get_request_items().as_ref().filter(|_| !asks_for_more)?;
        let asked = asked.iter().map(|(name, asked)| {
            let consistent = asked.consistent_read.unwrap_or(false);
            wants_whole_rows!(asked).then_some(Keys { table: name, keys: &asked.keys, consistent })
        });
        let Served { answer: tables, units } = self.read_batch(asked, place_of_call)?;
        let read = |(name, rows): (&str, Vec<String>)| {
            let rows = rows.iter().map(|json| attributes(json)).collect::<Option<_>>()?;
            Some((name.to_owned(), rows))
        };
        Some(Served { answer: tables.into_iter().map(read).collect::<Option<_>>()?, units })
    }

    /// The JSON of the rows that are there, by their tables.
    fn read_batch<'k, K: 'k>(
        &self,
        asked: impl Iterator<Item = Option<Keys<'k, K>>>,
        place_of: impl Fn(&Plain, &K) -> Option<Place>,
    ) -> Option<Served<Rows<'k>>> {
        let (mut tables, mut units, mut count, mut bytes) = (Vec::new(), Vec::new(), 0_usize, 0_usize);
        for asked in asked {
            let Keys { table: name, keys, consistent } = asked?;
            count = count.saturating_add(keys.len());
            if keys.is_empty() || count > ROWS_PER_BATCH_READ {
                return None;
            }
            let table = self.table(name)?;
            let storage = self.storage();
            let (mut rows, mut read, mut places) = (Vec::with_capacity(keys.len()), 0.0, HashSet::new());
            for key in keys {
                let place = place_of(&table, key)?;
                let row = table.row(&storage, &place)?;
                if !places.insert(place) {
                    return None;
                }
                let size = row.as_ref().map_or(0, |(_, size)| *size);
                read += types::read_capacity_units_with_consistency(size, consistent);
                bytes = bytes.saturating_add(size);
                rows.extend(row.map(|(json, _)| json));
            }
            if bytes > ANSWER_BYTES {
                return None;
            }
            units.push((name.to_owned(), Units { write: 0.0, read }));
            tables.push((name, rows));
        }
        (!tables.is_empty()).then_some(Served { answer: tables, units })
    }
}

/// The place of the row with a key as the library reads it.
fn place_of(table: &Plain, key: &Item) -> Option<Place> {
    table.place_of_key(key.len(), |name| match key.get(name) {
        Some(AttributeValue::S(text)) => Some(text.as_str()),
        _ => None,
    })
}

/// The same of a key that is handed over.
fn place_of_call(table: &Plain, key: &Attributes) -> Option<Place> {
    table.place_of_key(key.len(), |name| value::text(key, name))
}

/// Lets a connection keep the statements of [`Plain`].
pub(super) fn keep_statements(storage: &Storage) {
    storage.conn().set_prepared_statement_cache_capacity(KEPT_STATEMENTS);
}

#[cfg(test)]
mod tests;
