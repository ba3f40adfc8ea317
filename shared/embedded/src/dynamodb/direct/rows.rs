//! Rows that are put or deleted whole. A row whose values are texts, whole numbers, flags or lists of these is stored as it is sent.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::fmt;
use std::sync::Arc;

use aws_sdk_dynamodb::operation::batch_write_item::builders::BatchWriteItemInputBuilder;
use aws_sdk_dynamodb::operation::put_item::builders::PutItemInputBuilder;
use aws_sdk_dynamodb::types::WriteRequest;
use dynoxide::storage::Storage;
use dynoxide::types::{self, MAX_ITEM_SIZE};
use serde::de::{DeserializeSeed, Error as _, MapAccess, Visitor};
use serde::ser::SerializeMap as _;
use serde::{Deserialize, Serializer as _};
use serde_json::value::RawValue;

use super::table::{Place, Plain};
use super::value::{Attributes, Name, Value, text};
use super::{Reader, Served, place_of_call};
use crate::meter::Units;

const ROWS_PER_BATCH: usize = 25;
/// The longest name of an attribute here.
const NAME_BYTES: usize = 255;
/// What most rows take, in bytes.
const ROW_BYTES: usize = 512;

/// A request that writes rows and asks for nothing else.
pub(in crate::dynamodb) struct RowWrites {
    tables: Vec<(String, Arc<Plain>, Vec<RowWrite>)>,
    /// The rows are refused where others are.
    only_new: bool,
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
        let tables = request.request_items.iter().map(|(name, changes)| (&**name, &**changes));
        Self::read_batch(reader, tables, Change::read)
    }

    /// Nothing when it is to be made as a request.
    pub(in crate::dynamodb) fn of_batch_call(
        reader: &Reader,
        call: &BatchWriteItemInputBuilder,
    ) -> Option<Self> {
        let asks_for_more = call.get_return_consumed_capacity().is_some()
            || call.get_return_item_collection_metrics().is_some();
        let tables = call.get_request_items().as_ref().filter(|_| !asks_for_more)?;
        let tables = tables.iter().map(|(name, writes)| (&**name, &**writes));
        Self::read_batch(reader, tables, RowWrite::of_call)
    }

    fn read_batch<'b, C: 'b>(
        reader: &Reader,
        batch: impl Iterator<Item = (&'b str, &'b [C])>,
        read: impl Fn(&'b C, &Plain) -> Option<RowWrite>,
    ) -> Option<Self> {
        let (mut tables, mut count) = (Vec::new(), 0_usize);
        for (name, changes) in batch {
            count = count.saturating_add(changes.len());
            let table = reader.table(name)?;
            let writes = changes.iter().map(|change| read(change, &table)).collect::<Option<Vec<_>>>()?;
            let are_different =
                writes.iter().map(|row| &row.place).collect::<HashSet<_>>().len() == writes.len();
            if !are_different || writes.is_empty() || count > ROWS_PER_BATCH {
                return None;
            }
            tables.push((name.to_owned(), table, writes));
        }
        (count > 0).then_some(Self { tables, only_new: false })
    }

    /// Nothing when the library is to serve it.
    pub(in crate::dynamodb) fn of_put(reader: &Reader, body: &[u8]) -> Option<Self> {
        let request: PutItem<'_> = serde_json::from_slice(body).ok()?;
        let table = reader.table(&request.table_name)?;
        let only_new = is_only_new(request.condition_expression.as_deref(), &table)?;
        let row = Change::PutRequest { item: request.item }.read(&table)?;
        Some(Self { tables: vec![(request.table_name.into_owned(), table, vec![row])], only_new })
    }

    /// Nothing when it is to be made as a request.
    pub(in crate::dynamodb) fn of_put_call(reader: &Reader, call: &PutItemInputBuilder) -> Option<Self> {
        let asks_for_more = call.get_expected().is_some()
            || call.get_conditional_operator().is_some()
            || call.get_return_values().is_some()
            || call.get_return_consumed_capacity().is_some()
            || call.get_return_item_collection_metrics().is_some()
            || call.get_expression_attribute_names().is_some()
            || call.get_expression_attribute_values().is_some()
            || call.get_return_values_on_condition_check_failure().is_some();
        let name = call.get_table_name().as_deref().filter(|_| !asks_for_more)?;
        let table = reader.table(name)?;
        let only_new = is_only_new(call.get_condition_expression().as_deref(), &table)?;
        let row = RowWrite::put(call.get_item().as_ref()?, &table)?;
        Some(Self { tables: vec![(name.to_owned(), table, vec![row])], only_new })
    }

    /// Writes the rows, within a transaction of the caller's. Nothing, and nothing is written, when the library is to refuse it.
    pub(in crate::dynamodb) fn make(self, storage: &Storage) -> dynoxide::Result<Option<Served<()>>> {
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
        Ok(Some(Served { answer: (), units }))
    }
}

/// Whether a put is refused where there is a row. Nothing when the library is to say so: it knows which other names are reserved.
fn is_only_new(condition: Option<&str>, table: &Plain) -> Option<bool> {
    match condition {
        Some("attribute_not_exists(pk)") if table.partition_key == "pk" => Some(true),
        Some(_) => None,
        None => Some(false),
    }
}

impl RowWrite {
    /// One that is handed over.
    fn of_call(write: &WriteRequest, table: &Plain) -> Option<Self> {
        match (write.put_request(), write.delete_request()) {
            (Some(put), None) => Self::put(put.item(), table),
            (None, Some(delete)) => Some(Self { place: place_of_call(table, delete.key())?, put: None }),
            _ => None,
        }
    }

    fn put(row: &Attributes, table: &Plain) -> Option<Self> {
        let sort_key = table.sort_key.as_deref().and_then(|name| text(row, name));
        let place = table.place(text(row, &table.partition_key), sort_key)?;
        let (mut json, mut size) = (Vec::with_capacity(ROW_BYTES), 0_usize);
        let mut to = serde_json::Serializer::new(&mut json);
        let mut map = to.serialize_map(None).ok()?;
        for (name, value) in row {
            let value = Value::of(value)?;
            let is_sound = (1..=NAME_BYTES).contains(&name.len());
            size = size.saturating_add(name.len()).saturating_add(value.size().filter(|_| is_sound)?);
            map.serialize_entry(name, &value).ok()?;
        }
        map.end().ok()?;
        let json = String::from_utf8(json).ok()?;
        (size <= MAX_ITEM_SIZE).then_some(Self { place, put: Some((json, size)) })
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
