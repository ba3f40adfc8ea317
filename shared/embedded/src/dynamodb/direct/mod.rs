//! The plain requests on tables in a file, past the library: rows by their keys, rows that are put or deleted whole, and rows
//! that are updated.
//!
//! The library prepares each statement anew, reads each expression three times, and makes values of what is stored only to make
//! JSON of them again. What has neither a projection nor an index needs none of it. Whatever is not plain, is wrong, or fails is
//! left to the library, which answers as if this were not here; that both answer alike is tested.

mod expression;
mod update;

use std::collections::{HashMap, HashSet};
use std::sync::{Mutex, PoisonError};

use dynoxide::actions::batch_get_item::BatchGetItemRequest;
use dynoxide::actions::batch_write_item::{BatchWriteItemRequest, BatchWriteItemResponse, WriteRequest};
use dynoxide::actions::get_item::GetItemRequest;
use dynoxide::storage::{Storage, compute_hash_prefix};
use dynoxide::types::{
    self, AttributeDefinition, AttributeValue, Item, KeySchemaElement, KeyType, MAX_ITEM_SIZE,
    ScalarAttributeType,
};
use dynoxide::validation;
use rusqlite::{OptionalExtension as _, params};

use crate::meter::Units;

pub(super) use update::{KnownNames, Update, Updated};

/// The longest keys that DynamoDB takes, in bytes.
const PARTITION_KEY_BYTES: usize = 2048;
const SORT_KEY_BYTES: usize = 1024;
const ROWS_PER_BATCH_READ: usize = 100;
const ROWS_PER_BATCH_WRITE: usize = 25;
/// The most that a batch read answers with, in bytes.
const ANSWER_BYTES: usize = 16 * 1024 * 1024;
/// Statements that are kept: a few for each table.
const KEPT_STATEMENTS: usize = 64;

/// A connection that reads.
pub(super) struct Reader(Mutex<Storage>);

/// What a request is answered with, and the units of each table.
pub(super) struct Served {
    pub(super) body: Vec<u8>,
    pub(super) units: Vec<(String, Units)>,
}

/// A table without indexes and streams, whose keys are strings.
struct Plain {
    partition_key: String,
    sort_key: Option<String>,
    /// Its name, as a statement has it.
    quoted: String,
}

/// The columns of a key.
type Place = (String, String);

impl Reader {
    /// A connection to the tables at `address`.
    pub(super) fn open(address: &str) -> dynoxide::Result<Self> {
        let storage = Storage::new(address)?;
        keep_statements(&storage);
        Ok(Self(Mutex::new(storage)))
    }

    /// Nothing when the library is to answer.
    pub(super) fn get_item(&self, request: &GetItemRequest) -> Option<Served> {
        let names_attributes = request.projection_expression.is_some()
            || request.expression_attribute_names.is_some()
            || request.attributes_to_get.is_some();
        if names_attributes {
            return None;
        }
        let storage = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let table = Plain::of(&storage, &request.table_name)?;
        let row = table.row(&storage, &table.place_of_key(&request.key)?)?;
        let size = row.as_ref().map_or(0, |(_, size)| *size);
        let read =
            types::read_capacity_units_with_consistency(size, request.consistent_read.unwrap_or(false));
        let body = match row {
            Some((json, _)) => format!(r#"{{"Item":{json}}}"#).into_bytes(),
            None => b"{}".to_vec(),
        };
        Some(Served { body, units: vec![(request.table_name.clone(), Units { write: 0.0, read })] })
    }

    /// Nothing when the library is to answer.
    pub(super) fn batch_get_item(&self, request: &BatchGetItemRequest) -> Option<Served> {
        let tables = &request.request_items;
        if tables.values().map(|asked| asked.keys.len()).sum::<usize>() > ROWS_PER_BATCH_READ {
            return None;
        }
        let storage = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mut units = Vec::with_capacity(tables.len());
        let (mut body, mut bytes) = (br#"{"Responses":{"#.to_vec(), 0);
        for (number, (name, asked)) in tables.iter().enumerate() {
            let names_attributes = asked.projection_expression.is_some()
                || asked.expression_attribute_names.is_some()
                || asked.attributes_to_get.is_some();
            if names_attributes || asked.keys.is_empty() {
                return None;
            }
            let table = Plain::of(&storage, name)?;
            let consistent = asked.consistent_read.unwrap_or(false);
            body.extend(if number == 0 { "" } else { "," }.bytes());
            serde_json::to_writer(&mut body, name).ok()?;
            body.extend(b":[");
            let (mut read, mut places, mut separator) = (0.0, HashSet::new(), "");
            for key in &asked.keys {
                let place = table.place_of_key(key)?;
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
        (!units.is_empty()).then_some(Served { body, units })
    }
}

/// Lets a connection keep the statements of [`Plain`].
pub(super) fn keep_statements(storage: &Storage) {
    storage.conn().set_prepared_statement_cache_capacity(KEPT_STATEMENTS);
}

/// Puts and deletes what `request` says, within a transaction of the caller's. Returns the request when the library is to serve it.
pub(super) fn batch_write_item(
    storage: &Storage,
    mut request: BatchWriteItemRequest,
) -> Result<dynoxide::Result<BatchWriteItemResponse>, BatchWriteItemRequest> {
    let wants_metrics = request.return_item_collection_metrics.as_deref().is_some_and(|mode| mode != "NONE");
    let mode = request.return_consumed_capacity.as_deref();
    let knows_mode = matches!(mode, None | Some("NONE" | "TOTAL" | "INDEXES"));
    let rows = request.request_items.values().map(Vec::len).sum::<usize>();
    if wants_metrics || !knows_mode || !(1..=ROWS_PER_BATCH_WRITE).contains(&rows) {
        return Err(request);
    }
    let Some(tables) = planned(storage, &request.request_items) else { return Err(request) };
    Ok(write(storage, &mut request, &tables))
}

/// The table of each part of a request and the places of its rows, when all of them are plain.
fn planned(
    storage: &Storage,
    parts: &HashMap<String, Vec<WriteRequest>>,
) -> Option<HashMap<String, (Plain, Vec<Place>)>> {
    let mut tables = HashMap::with_capacity(parts.len());
    for (name, rows) in parts {
        let table = Plain::of(storage, name)?;
        let mut places = Vec::with_capacity(rows.len());
        for row in rows {
            places.push(match (&row.put_request, &row.delete_request) {
                (Some(put), None) => table.place_of_item(&put.item)?,
                (None, Some(delete)) => table.place_of_key(&delete.key)?,
                _ => return None,
            });
        }
        let are_different = places.iter().collect::<HashSet<_>>().len() == places.len();
        if !are_different || places.is_empty() {
            return None;
        }
        tables.insert(name.clone(), (table, places));
    }
    Some(tables)
}

fn write(
    storage: &Storage,
    request: &mut BatchWriteItemRequest,
    tables: &HashMap<String, (Plain, Vec<Place>)>,
) -> dynoxide::Result<BatchWriteItemResponse> {
    let mut consumed = Vec::with_capacity(tables.len());
    for (name, rows) in &mut request.request_items {
        let Some((table, places)) = tables.get(name) else { continue };
        let mut units = 0.0;
        for (row, place) in rows.iter_mut().zip(places) {
            let (old, new) = match &mut row.put_request {
                Some(put) => {
                    validation::normalize_item_sets(&mut put.item);
                    let size = types::item_size(&put.item);
                    (table.put(storage, place, (&put.item, size))?, Some(size))
                }
                None => (table.delete(storage, place)?, None),
            };
            units += types::table_write_capacity_units(old, new);
        }
        let none = HashMap::new();
        let mode = &request.return_consumed_capacity;
        let of_table = types::consumed_capacity_with_vector_indexes(name, units, &none, &none, &none, mode);
        consumed.extend(of_table);
    }
    let asks = matches!(request.return_consumed_capacity.as_deref(), Some("TOTAL" | "INDEXES"));
    Ok(BatchWriteItemResponse {
        unprocessed_items: HashMap::new(),
        consumed_capacity: asks.then_some(consumed),
        item_collection_metrics: None,
    })
}

impl Plain {
    /// The table with this name, if there is one and it is plain.
    fn of(storage: &Storage, name: &str) -> Option<Self> {
        let table = storage.get_table_metadata(name).ok()??;
        let has_more = |definitions: &Option<String>| {
            definitions.as_deref().is_some_and(|json| !matches!(json, "" | "null" | "[]"))
        };
        let has_more = has_more(&table.gsi_definitions)
            || has_more(&table.lsi_definitions)
            || has_more(&table.vector_index_definitions);
        if has_more || table.stream_enabled {
            return None;
        }
        let keys: Vec<KeySchemaElement> = serde_json::from_str(&table.key_schema).ok()?;
        let attributes: Vec<AttributeDefinition> = serde_json::from_str(&table.attribute_definitions).ok()?;
        let is_text = |name: &str| {
            let of_text = |attribute: &AttributeDefinition| {
                attribute.attribute_name == name && attribute.attribute_type == ScalarAttributeType::S
            };
            attributes.iter().any(of_text)
        };
        if !keys.iter().all(|key| is_text(&key.attribute_name)) {
            return None;
        }
        let key = |wanted: KeyType| keys.iter().find(|key| key.key_type == wanted);
        let partition_key = key(KeyType::HASH)?.attribute_name.clone();
        let sort_key = key(KeyType::RANGE).map(|key| key.attribute_name.clone());
        Some(Self { partition_key, sort_key, quoted: format!("\"{}\"", name.replace('"', "\"\"")) })
    }

    fn place_of_key(&self, key: &Item) -> Option<Place> {
        let wanted = if self.sort_key.is_some() { 2 } else { 1 };
        (key.len() == wanted).then(|| self.place(key))?
    }

    fn place_of_item(&self, item: &Item) -> Option<Place> {
        let is_sound = is_named(item)
            && validation::validate_item_attribute_values(item).is_ok()
            && types::item_size(item) <= MAX_ITEM_SIZE;
        is_sound.then(|| self.place(item))?
    }

    fn place(&self, attributes: &Item) -> Option<Place> {
        let text = |name: &str, most: usize| match attributes.get(name) {
            Some(AttributeValue::S(text)) if (1..=most).contains(&text.len()) => Some(format!("S:{text}")),
            _ => None,
        };
        let sort_key = match &self.sort_key {
            Some(name) => text(name, SORT_KEY_BYTES)?,
            None => String::new(),
        };
        Some((text(&self.partition_key, PARTITION_KEY_BYTES)?, sort_key))
    }

    /// The JSON of the row at a place and its size, if there is one; nothing at all when the library is to read it.
    fn row(&self, storage: &Storage, (pk, sk): &Place) -> Option<Option<(String, usize)>> {
        let sql = format!("SELECT item_json, item_size FROM {} WHERE pk = ?1 AND sk = ?2", self.quoted);
        let mut statement = storage.conn().prepare_cached(&sql).ok()?;
        let row = statement
            .query_row(params![pk, sk], |row| Ok((row.get::<_, String>(0)?, row.get::<_, i64>(1)?)))
            .optional();
        match row.ok()? {
            // The library puts the numbers of a set in order when it answers.
            Some((json, _)) if json.contains(r#""NS":"#) => None,
            Some((json, size)) => Some(Some((json, usize::try_from(size).ok()?))),
            None => Some(None),
        }
    }

    /// Puts a row; returns the size of the one before.
    fn put(
        &self,
        storage: &Storage,
        (pk, sk): &Place,
        (item, size): (&Item, usize),
    ) -> dynoxide::Result<Option<usize>> {
        let old = self.size(storage, (pk, sk))?;
        let json = serde_json::to_string(item)
            .map_err(|error| dynoxide::DynoxideError::InternalServerError(error.to_string()))?;
        let hash = item.get(&self.partition_key).map(compute_hash_prefix).unwrap_or_default();
        let sql = format!(
            "INSERT INTO {} (pk, sk, item_json, item_size, hash_prefix) VALUES (?1, ?2, ?3, ?4, ?5)
             ON CONFLICT (pk, sk) DO UPDATE SET item_json = ?3, item_size = ?4, hash_prefix = ?5",
            self.quoted
        );
        storage.conn().prepare_cached(&sql)?.execute(params![pk, sk, json, size as i64, hash])?;
        Ok(old)
    }

    /// Puts another row in the place of one that is there, with the same keys.
    fn rewrite(
        &self,
        storage: &Storage,
        (pk, sk): &Place,
        (json, size): (&str, usize),
    ) -> dynoxide::Result<()> {
        let sql =
            format!("UPDATE {} SET item_json = ?3, item_size = ?4 WHERE pk = ?1 AND sk = ?2", self.quoted);
        storage.conn().prepare_cached(&sql)?.execute(params![pk, sk, json, size as i64])?;
        Ok(())
    }

    /// Deletes a row; returns its size.
    fn delete(&self, storage: &Storage, (pk, sk): &Place) -> dynoxide::Result<Option<usize>> {
        let old = self.size(storage, (pk, sk))?;
        let sql = format!("DELETE FROM {} WHERE pk = ?1 AND sk = ?2", self.quoted);
        storage.conn().prepare_cached(&sql)?.execute(params![pk, sk])?;
        Ok(old)
    }

    fn size(&self, storage: &Storage, (pk, sk): (&str, &str)) -> dynoxide::Result<Option<usize>> {
        let sql = format!("SELECT item_size FROM {} WHERE pk = ?1 AND sk = ?2", self.quoted);
        let mut statement = storage.conn().prepare_cached(&sql)?;
        let size = statement.query_row(params![pk, sk], |row| row.get::<_, i64>(0)).optional()?;
        Ok(size.and_then(|size| usize::try_from(size).ok()))
    }
}

/// Whether no attribute in `item` has an empty name, at any depth.
fn is_named(item: &Item) -> bool {
    fn within(value: &AttributeValue) -> bool {
        match value {
            AttributeValue::M(map) => is_named(map),
            AttributeValue::L(values) => values.iter().all(within),
            _ => true,
        }
    }
    item.iter().all(|(name, value)| !name.is_empty() && within(value))
}

#[cfg(test)]
mod tests;
