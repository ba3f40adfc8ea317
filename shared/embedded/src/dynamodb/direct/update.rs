//! Updates of rows that are there, under conditions that hold.

use std::collections::{HashMap, HashSet};
use std::sync::{PoisonError, RwLock};

use dynoxide::actions::update_item::UpdateItemRequest;
use dynoxide::storage::Storage;
use dynoxide::types::{self, AttributeValue, MAX_ITEM_SIZE};
use serde_json::Value;

use super::expression::{Attributes, Expressions, Placeholders, is_plain};
use super::{Plain, Served};
use crate::meter::Units;

/// What else counts in one change at the most, in bytes: names as they stand, and functions.
const CHANGE_BYTES: usize = 512;
/// Names that are kept at the most: those of ours are some hundreds.
const KNOWN_NAMES: usize = 4096;

/// Names that the library has taken in an expression as they are: none of them is a reserved word.
#[derive(Default)]
pub(in crate::dynamodb) struct KnownNames(RwLock<HashSet<String>>);

/// A plain update, read before anybody waits for it.
pub(in crate::dynamodb) struct Update {
    request: UpdateItemRequest,
    /// Nothing when the library is to serve it.
    expressions: Option<(Expressions, Attributes)>,
}

impl KnownNames {
    fn have(&self, names: &HashSet<String>) -> bool {
        let known = self.0.read().unwrap_or_else(PoisonError::into_inner);
        names.iter().all(|name| known.contains(name))
    }

    fn add(&self, names: HashSet<String>) {
        let mut known = self.0.write().unwrap_or_else(PoisonError::into_inner);
        if known.len() < KNOWN_NAMES {
            known.extend(names);
        }
    }
}

impl Update {
    /// `reports`: the answer says what capacity was consumed, as only the library's do.
    pub(in crate::dynamodb) fn of(request: UpdateItemRequest, reports: bool) -> Self {
        let expressions = if reports { None } else { read(&request) };
        Self { request, expressions }
    }

    /// Updates the row, within a transaction of the caller's; by the library where it is not plain, its row is not there or
    /// its condition does not hold.
    pub(in crate::dynamodb) fn make<R>(
        self,
        storage: &Storage,
        known: &KnownNames,
        library: impl FnOnce(UpdateItemRequest) -> dynoxide::Result<R>,
    ) -> dynoxide::Result<Updated<R>> {
        let Self { request, expressions } = self;
        let Some((expressions, values)) = expressions else {
            return library(request).map(Updated::ByLibrary);
        };
        if known.have(&expressions.bare)
            && let Some(updated) = update(storage, &request, (&expressions, &values))
        {
            return updated.map(Updated::Directly);
        }
        let updated = library(request)?;
        known.add(expressions.bare);
        Ok(Updated::ByLibrary(updated))
    }
}

/// Who updated.
pub(in crate::dynamodb) enum Updated<R> {
    Directly(Served),
    ByLibrary(R),
}

/// What a request asks and does, and its values, if they are plain.
fn read(request: &UpdateItemRequest) -> Option<(Expressions, Attributes)> {
    let is_empty = request.expression_attribute_values.as_ref().is_some_and(HashMap::is_empty)
        || request.expression_attribute_names.as_ref().is_some_and(HashMap::is_empty);
    let asks_more = is_empty
        || request.attribute_updates.is_some()
        || request.expected.is_some()
        || request.conditional_operator.is_some()
        || request.return_item_collection_metrics.is_some()
        || !matches!(request.return_values.as_deref(), None | Some("NONE" | "ALL_NEW"));
    if asks_more {
        return None;
    }
    let mut values = Attributes::new();
    for (name, value) in request.expression_attribute_values.iter().flatten() {
        values.insert(name.clone(), serde_json::to_value(value).ok()?);
    }
    let placeholders = Placeholders { names: request.expression_attribute_names.as_ref(), values: &values };
    let condition = request.condition_expression.as_deref();
    let expressions = Expressions::read(request.update_expression.as_deref()?, condition, &placeholders)?;
    // Each use of a value or a name counts towards the size of an update.
    let values_given = request.expression_attribute_values.iter().flatten().map(|(_, value)| value.size());
    let names_given = request.expression_attribute_names.iter().flatten().map(|(_, name)| name.len());
    let bytes: usize = values_given.chain(names_given).sum();
    let targets = expressions.targets().count();
    let is_small =
        bytes.saturating_add(CHANGE_BYTES).saturating_mul(targets.saturating_add(1)) < MAX_ITEM_SIZE;
    (is_small && values.values().all(is_plain)).then_some((expressions, values))
}

/// Nothing when the library is to update.
fn update(
    storage: &Storage,
    request: &UpdateItemRequest,
    (expressions, values): (&Expressions, &Attributes),
) -> Option<dynoxide::Result<Served>> {
    let table = Plain::of(storage, &request.table_name)?;
    let place = table.place_of_key(&request.key)?;
    let is_key = |name: &str| name == table.partition_key || table.sort_key.as_deref() == Some(name);
    if expressions.targets().any(is_key) {
        return None;
    }
    let (json, old_size) = table.row(storage, &place)??;
    let mut row: Attributes = serde_json::from_str(&json).ok()?;
    let mut size = old_size;
    for (name, value) in expressions.changes(&row, values)? {
        let old = match value {
            Some(value) => {
                size = size.saturating_add(name.len()).saturating_add(size_of(&value)?);
                row.insert(name.to_owned(), value)
            }
            None => row.remove(name),
        };
        if let Some(old) = old {
            size = size.checked_sub(name.len().saturating_add(size_of(&old)?))?;
        }
    }
    if size > MAX_ITEM_SIZE {
        return None;
    }
    let json = serde_json::to_string(&row).ok()?;
    if let Err(error) = table.rewrite(storage, &place, (&json, size)) {
        return Some(Err(error));
    }
    let body = match request.return_values.as_deref() {
        Some("ALL_NEW") => format!(r#"{{"Attributes":{json}}}"#).into_bytes(),
        _ => b"{}".to_vec(),
    };
    let write = types::table_write_capacity_units(Some(old_size), Some(size));
    Some(Ok(Served { body, units: vec![(request.table_name.clone(), Units { write, read: 0.0 })] }))
}

/// What a value counts for; nothing when the library would not read it.
fn size_of(value: &Value) -> Option<usize> {
    Some(match value.as_object()?.iter().next()? {
        (kind, Value::String(text)) if kind == "S" => text.len(),
        (kind, Value::String(digits)) if kind == "N" => types::number_size(digits),
        (kind, Value::Bool(_)) if kind == "BOOL" => 1,
        _ => serde_json::from_value::<AttributeValue>(value.clone()).ok()?.size(),
    })
}
