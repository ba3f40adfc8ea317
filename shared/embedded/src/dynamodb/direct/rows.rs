//! Rows that are put or deleted whole. A row whose values are texts, whole numbers, flags or lists of these is stored as it is sent.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::fmt;
use std::sync::Arc;

use dynoxide::storage::Storage;
use dynoxide::types::{self, MAX_ITEM_SIZE};
use serde::Deserialize;
use serde::de::{DeserializeSeed, Error as _, MapAccess, Visitor};
use serde_json::value::RawValue;

use super::expression::is_whole;
use super::table::{Place, Plain};
use super::{Reader, Served};
use crate::meter::Units;

const ROWS_PER_BATCH: usize = 25;
/// The longest name of an attribute here.
const NAME_BYTES: usize = 255;

/// A request that writes rows and asks for nothing else.
pub(in crate::dynamodb) struct RowWrites {
    tables: Vec<(String, Arc<Plain>, Vec<RowWrite>)>,
    /// The rows are refused where others are.
    only_new: bool,
    answer: &'static str,
}

/// What becomes of the row at a place.
struct RowWrite {
    place: Place,
    /// Its JSON and its size; without, it is deleted.
    put: Option<(String, usize)>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "PascalCase")]
struct BatchWriteItem<'a> {
    #[serde(borrow)]
    request_items: HashMap<Cow<'a, str>, Vec<Change<'a>>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all_fields = "PascalCase")]
enum Change<'a> {
    PutRequest {
        #[serde(borrow)]
        item: &'a RawValue,
    },
    DeleteRequest {
        #[serde(borrow)]
        key: &'a RawValue,
    },
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "PascalCase")]
struct PutItem<'a> {
    #[serde(borrow)]
    table_name: Cow<'a, str>,
    #[serde(borrow)]
    item: &'a RawValue,
    #[serde(borrow)]
    condition_expression: Option<Cow<'a, str>>,
}

/// A value that is stored as it is sent, if its numbers are whole.
#[derive(Deserialize)]
enum Value<'a> {
    S(#[serde(borrow)] Cow<'a, str>),
    N(#[serde(borrow)] Cow<'a, str>),
    #[serde(rename = "BOOL")]
    Bool(bool),
    L(#[serde(borrow)] Vec<Flat<'a>>),
}

#[derive(Deserialize)]
enum Flat<'a> {
    S(#[serde(borrow)] Cow<'a, str>),
    N(#[serde(borrow)] Cow<'a, str>),
}

/// The name of an attribute, as it lies in the request where it can.
#[derive(Deserialize)]
struct Name<'a>(#[serde(borrow)] Cow<'a, str>);

/// What a row is read for.
struct Row<'a> {
    partition_key: Option<Cow<'a, str>>,
    sort_key: Option<Cow<'a, str>>,
    attributes: usize,
    size: usize,
}

/// Reads the rows of a table.
struct RowOf<'t>(&'t Plain);

impl RowWrites {
    /// Nothing when the library is to serve it.
    pub(in crate::dynamodb) fn of_batch(reader: &Reader, body: &[u8]) -> Option<Self> {
        let request: BatchWriteItem<'_> = serde_json::from_slice(body).ok()?;
        let rows = request.request_items.values().map(Vec::len).sum::<usize>();
        if !(1..=ROWS_PER_BATCH).contains(&rows) {
            return None;
        }
        let mut tables = Vec::with_capacity(request.request_items.len());
        for (name, changes) in request.request_items {
            let table = reader.table(&name)?;
            let writes = changes.iter().map(|change| change.read(&table)).collect::<Option<Vec<_>>>()?;
            let are_different =
                writes.iter().map(|row| &row.place).collect::<HashSet<_>>().len() == writes.len();
            if !are_different || writes.is_empty() {
                return None;
            }
            tables.push((name.into_owned(), table, writes));
        }
        Some(Self { tables, only_new: false, answer: r#"{"UnprocessedItems":{}}"# })
    }

    /// Nothing when the library is to serve it.
    pub(in crate::dynamodb) fn of_put(reader: &Reader, body: &[u8]) -> Option<Self> {
        let request: PutItem<'_> = serde_json::from_slice(body).ok()?;
        let table = reader.table(&request.table_name)?;
        // Of other names the library knows whether they are reserved words.
        let only_new = match request.condition_expression.as_deref() {
            Some("attribute_not_exists(pk)") if table.partition_key == "pk" => true,
            Some(_) => return None,
            None => false,
        };
        let row = Change::PutRequest { item: request.item }.read(&table)?;
        let tables = vec![(request.table_name.into_owned(), table, vec![row])];
        Some(Self { tables, only_new, answer: "{}" })
    }

    /// Writes the rows, within a transaction of the caller's. Nothing, and nothing is written, when the library is to refuse it.
    pub(in crate::dynamodb) fn make(self, storage: &Storage) -> dynoxide::Result<Option<Served>> {
        let mut units = Vec::with_capacity(self.tables.len());
        for (name, table, rows) in self.tables {
            let mut write = 0.0;
            for RowWrite { place, put } in rows {
                let (old, new) = match put {
                    Some((json, size)) if self.only_new => {
                        if !table.insert(storage, &place, (&json, size))? {
                            return Ok(None);
                        }
                        (None, Some(size))
                    }
                    Some((json, size)) => (table.put(storage, &place, (&json, size))?, Some(size)),
                    None => (table.delete(storage, &place)?, None),
                };
                write += types::table_write_capacity_units(old, new);
            }
            units.push((name, Units { write, read: 0.0 }));
        }
        Ok(Some(Served { body: self.answer.as_bytes().to_vec(), units }))
    }
}

impl Change<'_> {
    fn read(&self, table: &Plain) -> Option<RowWrite> {
        let (json, is_put) = match self {
            Self::PutRequest { item } => (item.get(), true),
            Self::DeleteRequest { key } => (key.get(), false),
        };
        let row = RowOf(table).deserialize(&mut serde_json::Deserializer::from_str(json)).ok()?;
        let place = table.place(row.partition_key.as_deref(), row.sort_key.as_deref())?;
        let is_sound = if is_put { row.size <= MAX_ITEM_SIZE } else { row.attributes == table.keys() };
        is_sound.then(|| RowWrite { place, put: is_put.then(|| (json.to_owned(), row.size)) })
    }
}

impl Value<'_> {
    /// What it counts for; nothing when it is stored otherwise than it is sent.
    fn size(&self) -> Option<usize> {
        match self {
            Self::S(text) => Some(text.len()),
            Self::N(number) => size_of_number(number),
            Self::Bool(flag) => Some(size_of_val(flag)),
            Self::L(values) => values.iter().try_fold(3_usize, |size, value| {
                let value = match value {
                    Flat::S(text) => text.len(),
                    Flat::N(number) => size_of_number(number)?,
                };
                size.checked_add(value)?.checked_add(1)
            }),
        }
    }
}

fn size_of_number(number: &str) -> Option<usize> {
    is_whole(number).then(|| types::number_size(number))
}

impl<'de> DeserializeSeed<'de> for RowOf<'_> {
    type Value = Row<'de>;

    fn deserialize<D: serde::Deserializer<'de>>(self, deserializer: D) -> Result<Row<'de>, D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for RowOf<'_> {
    type Value = Row<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the attributes of a row")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Row<'de>, A::Error> {
        let mut row = Row { partition_key: None, sort_key: None, attributes: 0, size: 0 };
        let mut names: Vec<Cow<'de, str>> = Vec::with_capacity(16);
        while let Some(Name(name)) = map.next_key::<Name<'de>>()? {
            let value: Value<'de> = map.next_value()?;
            let size = value.size().ok_or_else(|| A::Error::custom("not stored as it is sent"))?;
            if !(1..=NAME_BYTES).contains(&name.len()) || names.contains(&name) {
                return Err(A::Error::custom("a name that is long, empty or used twice"));
            }
            row.size = row.size.saturating_add(name.len()).saturating_add(size);
            row.attributes = row.attributes.saturating_add(1);
            match value {
                Value::S(text) if *name == self.0.partition_key => row.partition_key = Some(text),
                Value::S(text) if self.0.sort_key.as_deref() == Some(&*name) => row.sort_key = Some(text),
                _ => {}
            }
            names.push(name);
        }
        Ok(row)
    }
}
