//! Updates of rows that are there, under conditions that hold.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use dynoxide::storage::Storage;
use dynoxide::types::{self, AttributeValue, MAX_ITEM_SIZE};
use serde::Deserialize;
use serde_json::Value;

use super::expression::{Attributes, Expressions, Placeholders, is_plain, text};
use super::table::{Place, Plain};
use super::{Reader, Served};
use crate::meter::Units;

/// What else counts in one change at the most, in bytes: names as they stand, and functions.
const CHANGE_BYTES: usize = 512;

/// A plain update, read before anybody waits for it.
pub(in crate::dynamodb) struct Update {
    table_name: String,
    table: Arc<Plain>,
    place: Place,
    expressions: Expressions,
    values: Attributes,
    /// The names in its expressions that stand for themselves have all been taken by the library.
    knows_names: bool,
    /// It is answered with the row.
    tells: bool,
}

/// A request that updates a row and asks for nothing else.
#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "PascalCase")]
struct UpdateItem {
    table_name: String,
    key: Attributes,
    update_expression: String,
    condition_expression: Option<String>,
    expression_attribute_values: Option<Attributes>,
    expression_attribute_names: Option<HashMap<String, String>>,
    return_values: Option<String>,
    return_values_on_condition_check_failure: Option<String>,
}

impl Update {
    /// Nothing when the library is to serve it.
    pub(in crate::dynamodb) fn of(reader: &Reader, body: &[u8]) -> Option<Self> {
        let request: UpdateItem = serde_json::from_slice(body).ok()?;
        let tells = match request.return_values.as_deref() {
            None | Some("NONE") => false,
            Some("ALL_NEW") => true,
            Some(_) => return None,
        };
        let is_empty = request.expression_attribute_values.as_ref().is_some_and(Attributes::is_empty)
            || request.expression_attribute_names.as_ref().is_some_and(HashMap::is_empty);
        let on_failure = request.return_values_on_condition_check_failure.as_deref();
        if is_empty || !matches!(on_failure, None | Some("NONE" | "ALL_OLD")) {
            return None;
        }
        let table = reader.table(&request.table_name)?;
        let place = table.place_of_key(request.key.len(), |name| request.key.get(name).and_then(text))?;
        let values = request.expression_attribute_values.unwrap_or_default();
        let names = request.expression_attribute_names.as_ref();
        let placeholders = Placeholders { names, values: &values };
        let condition = request.condition_expression.as_deref();
        let expressions = Expressions::read(&request.update_expression, condition, &placeholders)?;
        let is_key = |name: &str| name == table.partition_key || table.sort_key.as_deref() == Some(name);
        if expressions.targets().any(is_key) || !values.values().all(is_plain) {
            return None;
        }
        // Each use of a value or a name counts towards the size of an update.
        let values_given = values.values().map(size_of).sum::<Option<usize>>()?;
        let names_given = names.into_iter().flatten().map(|(_, name)| name.len()).sum();
        let each = values_given.saturating_add(names_given).saturating_add(CHANGE_BYTES);
        let changes = expressions.targets().count().saturating_add(1);
        let knows_names = reader.known.has_names(&expressions.bare);
        let table_name = request.table_name;
        let update = Self { table_name, table, place, expressions, values, knows_names, tells };
        (each.saturating_mul(changes) < MAX_ITEM_SIZE).then_some(update)
    }

    /// Updates the row, within a transaction of the caller's. Where the library is to do so, since the row is not there, the
    /// condition does not hold or nobody knows here, the names that it will have taken when it did.
    pub(in crate::dynamodb) fn make(
        self,
        storage: &Storage,
    ) -> dynoxide::Result<Result<Served, HashSet<String>>> {
        let changed = if self.knows_names { self.changed(storage) } else { None };
        let Some((json, old, new)) = changed else { return Ok(Err(self.expressions.bare)) };
        self.table.rewrite(storage, &self.place, (&json, new))?;
        let body = match self.tells {
            true => format!(r#"{{"Attributes":{json}}}"#).into_bytes(),
            false => b"{}".to_vec(),
        };
        let write = types::table_write_capacity_units(Some(old), Some(new));
        Ok(Ok(Served { body, units: vec![(self.table_name, Units { write, read: 0.0 })] }))
    }

    /// The row as it is then, and its size before and after.
    fn changed(&self, storage: &Storage) -> Option<(String, usize, usize)> {
        let (json, old) = self.table.row(storage, &self.place)??;
        let mut row: Attributes = serde_json::from_str(&json).ok()?;
        let mut size = old;
        for (name, value) in self.expressions.changes(&row, &self.values)? {
            let former = match value {
                Some(value) => {
                    size = size.saturating_add(name.len()).saturating_add(size_of(&value)?);
                    row.insert(name.to_owned(), value)
                }
                None => row.remove(name),
            };
            if let Some(former) = former {
                size = size.checked_sub(name.len().saturating_add(size_of(&former)?))?;
            }
        }
        (size <= MAX_ITEM_SIZE).then_some((serde_json::to_string(&row).ok()?, old, size))
    }
}

/// What a value counts for; nothing when the library would not read it.
fn size_of(value: &Value) -> Option<usize> {
    Some(match value.as_object()?.iter().next()? {
        (kind, Value::String(text)) if kind == "S" => text.len(),
        (kind, Value::String(digits)) if kind == "N" => types::number_size(digits),
        (kind, Value::Bool(_)) if kind == "BOOL" => 1,
        (kind, Value::Array(values)) if kind == "L" => values
            .iter()
            .try_fold(3_usize, |size, value| size.checked_add(size_of(value)?)?.checked_add(1))?,
        _ => serde_json::from_value::<AttributeValue>(value.clone()).ok()?.size(),
    })
}
