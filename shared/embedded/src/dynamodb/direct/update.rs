//! Updates of rows that are there, under conditions that hold.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use aws_sdk_dynamodb::operation::update_item::builders::UpdateItemInputBuilder;
use dynoxide::storage::Storage;
use dynoxide::types::{self, MAX_ITEM_SIZE};
use serde::ser::SerializeMap as _;
use serde::{Deserialize, Serializer as _};

use super::expression::{Expressions, Meanings};
use super::table::{Place, Plain};
use super::value::{Name, Stored, Value, Values};
use super::{Names, Reader, Served};
use crate::meter::Units;

/// What else counts in one change at the most, in bytes: names as they stand, and functions.
const CHANGE_BYTES: usize = 512;

/// A plain update, read before anybody waits for it.
pub(in crate::dynamodb) struct Update {
    table_name: String,
    table: Arc<Plain>,
    place: Place,
    expressions: Expressions,
    values: Vec<Value<'static>>,
    /// It is answered with the row.
    tells: bool,
}

/// A request that updates a row and asks for nothing else.
#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "PascalCase")]
struct UpdateItem<'a> {
    #[serde(borrow)]
    table_name: Cow<'a, str>,
    #[serde(borrow)]
    key: Values<'a>,
    #[serde(borrow)]
    update_expression: Cow<'a, str>,
    #[serde(borrow)]
    condition_expression: Option<Cow<'a, str>>,
    #[serde(borrow)]
    expression_attribute_values: Option<Values<'a>>,
    #[serde(borrow)]
    expression_attribute_names: Option<BTreeMap<Name<'a>, Name<'a>>>,
    #[serde(borrow)]
    return_values: Option<Cow<'a, str>>,
    #[serde(borrow)]
    return_values_on_condition_check_failure: Option<Cow<'a, str>>,
}

impl<'a> UpdateItem<'a> {
    /// The same as a call has it.
    fn of_call(call: &'a UpdateItemInputBuilder) -> Option<Self> {
        let asks_for_more = call.get_attribute_updates().is_some()
            || call.get_expected().is_some()
            || call.get_conditional_operator().is_some()
            || call.get_return_consumed_capacity().is_some()
            || call.get_return_item_collection_metrics().is_some();
        if asks_for_more {
            return None;
        }
        let name = |(placeholder, name): (&'a String, &'a String)| (Name::of(placeholder), Name::of(name));
        let values = call.get_expression_attribute_values().as_ref();
        let on_failure = call.get_return_values_on_condition_check_failure().as_ref();
        Some(Self {
            table_name: call.get_table_name().as_deref()?.into(),
            key: Value::all(call.get_key().as_ref()?)?,
            update_expression: call.get_update_expression().as_deref()?.into(),
            condition_expression: call.get_condition_expression().as_deref().map(Cow::from),
            expression_attribute_values: values.map(Value::all).map_or(Some(None), |all| all.map(Some))?,
            expression_attribute_names: call
                .get_expression_attribute_names()
                .as_ref()
                .map(|names| names.iter().map(name).collect()),
            return_values: call.get_return_values().as_ref().map(|values| values.as_str().into()),
            return_values_on_condition_check_failure: on_failure.map(|values| values.as_str().into()),
        })
    }
}

impl Update {
    /// Nothing when the library is to serve it.
    pub(in crate::dynamodb) fn of(reader: &Reader, body: &[u8]) -> Option<Self> {
        Self::read(reader, serde_json::from_slice(body).ok()?)
    }

    /// Nothing when it is to be made as a request.
    pub(in crate::dynamodb) fn of_call(reader: &Reader, call: &UpdateItemInputBuilder) -> Option<Self> {
        Self::read(reader, UpdateItem::of_call(call)?)
    }

    fn read(reader: &Reader, request: UpdateItem<'_>) -> Option<Self> {
        let tells = match request.return_values.as_deref() {
            None | Some("NONE") => false,
            Some("ALL_NEW") => true,
            Some(_) => return None,
        };
        let is_empty = request.expression_attribute_values.as_ref().is_some_and(BTreeMap::is_empty)
            || request.expression_attribute_names.as_ref().is_some_and(BTreeMap::is_empty);
        let on_failure = request.return_values_on_condition_check_failure.as_deref();
        if is_empty || !matches!(on_failure, None | Some("NONE" | "ALL_OLD")) {
            return None;
        }
        let table = reader.table(&request.table_name)?;
        let place =
            table.place_of_key(request.key.len(), |name| request.key.get(name).and_then(Value::text))?;
        let values = request.expression_attribute_values.unwrap_or_default();
        let (given, values): (Vec<Name<'_>>, Vec<Value<'_>>) = values.into_iter().unzip();
        let names = request.expression_attribute_names.as_ref();
        let meanings = Meanings { names, values: &given, known: &reader.known.names() };
        let condition = request.condition_expression.as_deref();
        let expressions = Expressions::read(&request.update_expression, condition, &meanings)?;
        let is_key = |name: &str| name == table.partition_key || table.sort_key.as_deref() == Some(name);
        if expressions.targets().any(is_key) {
            return None;
        }
        // Each use of a value or a name counts towards the size of an update.
        let values_given = values.iter().map(Value::size).sum::<Option<usize>>()?;
        let names_given = names.into_iter().flatten().map(|(_, name)| name.0.len()).sum();
        let each = values_given.saturating_add(names_given).saturating_add(CHANGE_BYTES);
        let changes = expressions.targets().count().saturating_add(1);
        let values = values.into_iter().map(Value::into_owned).collect();
        let table_name = request.table_name.into_owned();
        let update = Self { table_name, table, place, expressions, values, tells };
        (each.saturating_mul(changes) < MAX_ITEM_SIZE).then_some(update)
    }

    /// Updates the row, within a transaction of the caller's, and answers with what `answer` makes of it if it is to be told.
    /// Where the library is to do so, since the row is not there, the condition does not hold or nobody knows here, the names that it
    /// will have taken when it did.
    pub(in crate::dynamodb) fn make<A>(
        self,
        storage: &Storage,
        answer: impl FnOnce(Option<&str>) -> Option<A>,
    ) -> dynoxide::Result<Result<Served<A>, Names>> {
        let changed = if self.expressions.unknown.is_empty() { self.changed(storage) } else { None };
        let told = changed.and_then(|changed| Some((answer(self.tells.then_some(&changed.0))?, changed)));
        let Some((answer, (json, old, new))) = told else { return Ok(Err(self.expressions.unknown)) };
        self.table.rewrite(storage, &self.place, (&json, new))?;
        let write = types::table_write_capacity_units(Some(old), Some(new));
        Ok(Ok(Served { answer, units: vec![(self.table_name, Units { write, read: 0.0 })] }))
    }

    /// The row as it is then, and its size before and after.
    fn changed(&self, storage: &Storage) -> Option<(String, usize, usize)> {
        let (json, old) = self.table.row(storage, &self.place)??;
        let row = Stored::read(&json)?;
        let mut changes = self.expressions.changes(&row, &self.values)?;
        let mut size = old;
        for (name, value) in &changes {
            if let Some(value) = value {
                size = size.saturating_add(name.len()).saturating_add(value.size()?);
            }
            if let Some(former) = row.value(name)? {
                size = size.checked_sub(name.len().saturating_add(former.size()?))?;
            }
        }
        if size > MAX_ITEM_SIZE {
            return None;
        }
        let mut written = Vec::with_capacity(json.len());
        let mut to = serde_json::Serializer::new(&mut written);
        let mut map = to.serialize_map(None).ok()?;
        for (Name(name), former) in row.into_attributes() {
            match changes.remove(&*name) {
                None => map.serialize_entry(&name, former).ok()?,
                Some(Some(value)) => map.serialize_entry(&name, &value).ok()?,
                Some(None) => {}
            }
        }
        for (name, value) in changes.iter().filter_map(|(name, value)| Some((name, value.as_ref()?))) {
            map.serialize_entry(name, value).ok()?;
        }
        map.end().ok()?;
        Some((String::from_utf8(written).ok()?, old, size))
    }
}
