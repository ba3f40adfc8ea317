//! The calls that the tables are made of: get, put, delete, update, query. Each is counted in the budgets.

use std::collections::HashMap;

use aws_sdk_dynamodb::error::{ProvideErrorMetadata, SdkError};
use aws_sdk_dynamodb::operation::transact_write_items::TransactWriteItemsError;
use aws_sdk_dynamodb::types::{
    AttributeValue, DeleteRequest, KeysAndAttributes, PutRequest, ReturnValue,
    ReturnValuesOnConditionCheckFailure, TransactWriteItem, WriteRequest,
};
use aws_smithy_runtime_api::client::orchestrator::HttpResponse;
use futures::future::try_join_all;
use futures::stream::{self, StreamExt as _};
use tidegate_calls::Call as _;
use tidegate_domain::limits::WRITE_ROUNDS;

use crate::item::{Attributes, Item, Key, Row, text};
use crate::tables::{PARTITION_KEY, SORT_KEY, Table};
use crate::{Create, Page, PageOf, Result, Store, StoreError, Write};

/// Rows that one batch call of DynamoDB writes, at the most.
const ROWS_PER_BATCH: usize = 25;
/// Rows that one batch call of DynamoDB reads, at the most.
const ROWS_PER_BATCH_READ: usize = 100;
/// Batch calls that write rows of one call at once.
const BATCHES_AT_ONCE: usize = 4;
/// Stands between the two keys of a row at which a page of a whole table ends: no key has it.
const PLACE: char = '\n';
/// Why a transaction is cancelled that may take place a little later.
const PASSING_REASONS: [&str; 3] =
    ["TransactionConflict", "ThrottlingError", "ProvisionedThroughputExceeded"];

/// A conditional update of one row.
pub(crate) struct Update {
    table: Table,
    key: Key,
    changes: String,
    condition: Option<String>,
    values: Attributes,
    names: HashMap<String, String>,
}

impl Update {
    pub(crate) fn new(table: Table, key: Key, changes: impl Into<String>) -> Self {
        Self {
            table,
            key,
            changes: changes.into(),
            condition: None,
            values: Attributes::new(),
            names: HashMap::new(),
        }
    }

    /// Makes a row that is there say what `row` says. Attributes that this version does not know stay as they are: a newer
    /// one may have written them. Any other row that is written over is replaced as a whole.
    pub(crate) fn rewrite(table: Table, row: Row) -> Self {
        let (key, says, absent) = row.into_changes();
        let mut update = Self::new(table, key, "SET");
        for (number, (name, value)) in says.into_iter().enumerate() {
            let comma = if number == 0 { "" } else { "," };
            update.changes.push_str(&format!("{comma} #s{number} = :s{number}"));
            update = update.name(&format!("#s{number}"), name).value(format!(":s{number}"), value);
        }
        for (number, name) in absent.into_iter().enumerate() {
            let before = if number == 0 { " REMOVE" } else { "," };
            update.changes.push_str(&format!("{before} #r{number}"));
            update = update.name(&format!("#r{number}"), name);
        }
        update
    }

    pub(crate) fn when(mut self, condition: impl Into<String>) -> Self {
        self.condition = Some(condition.into());
        self
    }

    pub(crate) fn value(mut self, name: impl Into<String>, value: AttributeValue) -> Self {
        self.values.insert(name.into(), value);
        self
    }

    /// Lets `placeholder` stand for an attribute whose name has other characters than letters and digits.
    pub(crate) fn name(mut self, placeholder: &str, attribute: impl Into<String>) -> Self {
        self.names.insert(placeholder.to_owned(), attribute.into());
        self
    }
}

/// What came of an update. Either way the row's image costs no read.
#[derive(Debug)]
pub(crate) enum Updated {
    /// It took place; the row as it is now.
    Done(Attributes),
    /// The condition did not hold; the row as it is, if there is one.
    Refused(Option<Attributes>),
}

impl From<Updated> for Write {
    fn from(updated: Updated) -> Self {
        match updated {
            Updated::Done(_) => Self::Done,
            Updated::Refused(_) => Self::Refused,
        }
    }
}

/// Which sort keys of a partition a query reads.
#[derive(Debug, Clone)]
pub(crate) enum Sorted {
    All,
    Prefix(String),
    /// Both ends included.
    Between(String, String),
}

/// A query of one partition.
pub(crate) struct Query {
    pub(crate) table: Table,
    pub(crate) pk: String,
    pub(crate) sorted: Sorted,
    pub(crate) limit: Option<i32>,
    pub(crate) consistent: bool,
    pub(crate) descending: bool,
    /// The sort key after which to go on.
    pub(crate) after: Option<String>,
}

impl Query {
    /// A page of a list.
    pub(crate) fn page(self, PageOf { after, rows }: PageOf) -> Self {
        Self { limit: Some(rows.get().into()), after, ..self }
    }

    pub(crate) fn of(table: Table, pk: impl Into<String>) -> Self {
        let pk = pk.into();
        Self {
            table,
            pk,
            sorted: Sorted::All,
            limit: None,
            consistent: false,
            descending: false,
            after: None,
        }
    }
}

impl Store {
    pub(crate) async fn get(&self, table: Table, key: &Key, consistent: bool) -> Result<Option<Attributes>> {
        let got = self
            .db
            .get_item()
            .table_name(self.name(table))
            .set_key(Some(key.attributes()))
            .consistent_read(consistent)
            .send_by(&self.way)
            .await;
        got.map(|out| out.item).map_err(|e| StoreError::aws("GetItem", table, &e))
    }

    /// A row that is good from the moment on that it was written: where an eventual read finds none, a consistent one says so.
    pub(crate) async fn get_once_there(&self, table: Table, key: &Key) -> Result<Option<Attributes>> {
        match self.get(table, key, false).await? {
            None => self.get(table, key, true).await,
            found => Ok(found),
        }
    }

    /// Makes a call that writes one row; once more, after a pause, when a transaction was at that row: nothing was written
    /// then, and the SDK does not do it by itself.
    async fn on_row<T, E, F>(&self, call: impl Fn() -> F) -> std::result::Result<T, SdkError<E, HttpResponse>>
    where
        E: ProvideErrorMetadata,
        F: Future<Output = std::result::Result<T, SdkError<E, HttpResponse>>>,
    {
        let mut round = 1;
        loop {
            match call().await {
                Err(error)
                    if round <= WRITE_ROUNDS && error.code() == Some("TransactionConflictException") =>
                {
                    round += 1;
                    if !self.pauses.before(round).await {
                        return Err(error);
                    }
                }
                made => return made,
            }
        }
    }

    /// The rows that are there of some keys, all different, 100 to a call. They may lag a little, unless they are read
    /// consistently.
    pub(crate) async fn get_all(
        &self,
        table: Table,
        keys: &[&Key],
        consistent: bool,
    ) -> Result<HashMap<Key, Attributes>> {
        let batches = keys.chunks(ROWS_PER_BATCH_READ).map(|keys| self.get_batch(table, keys, consistent));
        Ok(try_join_all(batches).await?.into_iter().flatten().collect())
    }

    async fn get_batch(
        &self,
        table: Table,
        keys: &[&Key],
        consistent: bool,
    ) -> Result<Vec<(Key, Attributes)>> {
        let mut found = Vec::with_capacity(keys.len());
        let mut left: Vec<Attributes> = keys.iter().map(|key| key.attributes()).collect();
        for round in 1..=WRITE_ROUNDS {
            if !self.pauses.before(round).await {
                break;
            }
            let asked = KeysAndAttributes::builder().set_keys(Some(left.clone())).consistent_read(consistent);
            let asked = asked.build();
            let asked = asked.map_err(unbuilt(table))?;
            let got =
                self.db.batch_get_item().request_items(self.name(table), asked).send_by(&self.way).await;
            let got = match got.map_err(|e| StoreError::aws("BatchGetItem", table, &e)) {
                Ok(got) => got,
                // Of none of them: no other than what some of them would say.
                Err(error) if error.is_throttling() => continue,
                Err(error) => return Err(error),
            };
            for row in got.responses.into_iter().flat_map(|tables| tables.into_values().flatten()) {
                let item = Item::new(table, &row);
                found.push((item.key()?, row));
            }
            let open = got.unprocessed_keys.into_iter().flat_map(HashMap::into_values);
            left = open.flat_map(|open| open.keys).collect();
            if left.is_empty() {
                return Ok(found);
            }
        }
        Err(StoreError::not_served("BatchGetItem", table))
    }

    pub(crate) async fn put(&self, table: Table, row: Row) -> Result<()> {
        let put = self.db.put_item().table_name(self.name(table)).set_item(Some(row.into_attributes()));
        let put = self.on_row(|| put.send_by(&self.way)).await;
        put.map(drop).map_err(|e| StoreError::aws("PutItem", table, &e))
    }

    pub(crate) async fn put_new(&self, table: Table, row: Row) -> Result<Create> {
        let absent = format!("attribute_not_exists({PARTITION_KEY})");
        Ok(match self.put_when(table, row, &absent, Attributes::new()).await? {
            Write::Done => Create::Done,
            Write::Refused => Create::Exists,
        })
    }

    /// Puts a row in the place of one for which `condition` holds.
    pub(crate) async fn put_when(
        &self,
        table: Table,
        row: Row,
        condition: &str,
        values: Attributes,
    ) -> Result<Write> {
        let put = self
            .db
            .put_item()
            .table_name(self.name(table))
            .set_item(Some(row.into_attributes()))
            .condition_expression(condition)
            .set_expression_attribute_values(Some(values).filter(|v| !v.is_empty()));
        let put = self.on_row(|| put.send_by(&self.way)).await;
        match put {
            Ok(_) => Ok(Write::Done),
            Err(e) if is_condition(&e) => Ok(Write::Refused),
            Err(e) => Err(StoreError::aws("PutItem", table, &e)),
        }
    }

    /// Puts rows, 25 to a call, whatever is there, some calls at once. What DynamoDB skips is sent again, a bounded number
    /// of times.
    pub(crate) async fn put_all(&self, rows: Vec<(Table, Row)>) -> Result<()> {
        self.put_all_within(WRITE_ROUNDS, rows).await
    }

    /// The same in so many rounds.
    pub(crate) async fn put_all_within(&self, rounds: u32, rows: Vec<(Table, Row)>) -> Result<()> {
        let put = |(table, row): (Table, Row)| {
            let put = PutRequest::builder().set_item(Some(row.into_attributes())).build();
            Ok((table, WriteRequest::builder().put_request(put.map_err(unbuilt(table))?).build()))
        };
        self.write_all(rounds, rows.into_iter().map(put).collect::<Result<_>>()?).await
    }

    /// Deletes rows, 25 to a call, some calls at once; those that are not there are no error.
    pub(crate) async fn remove_rows(&self, table: Table, keys: Vec<Key>) -> Result<()> {
        let gone = |key: Key| {
            let gone = DeleteRequest::builder().set_key(Some(key.attributes())).build();
            Ok((table, WriteRequest::builder().delete_request(gone.map_err(unbuilt(table))?).build()))
        };
        self.write_all(WRITE_ROUNDS, keys.into_iter().map(gone).collect::<Result<_>>()?).await
    }

    async fn write_all(&self, rounds: u32, writes: Vec<(Table, WriteRequest)>) -> Result<()> {
        let (mut writes, mut calls) = (writes.into_iter().peekable(), Vec::new());
        while let Some(first_table) = writes.peek().map(|(table, _)| *table) {
            let mut requests: HashMap<String, Vec<WriteRequest>> = HashMap::new();
            for (table, write) in writes.by_ref().take(ROWS_PER_BATCH) {
                requests.entry(self.name(table)).or_default().push(write);
            }
            calls.push(self.write_batch(rounds, first_table, requests));
        }
        // All of them, whatever becomes of one: what is written need not be written again.
        let written: Vec<Result<()>> = stream::iter(calls).buffer_unordered(BATCHES_AT_ONCE).collect().await;
        written.into_iter().collect()
    }

    /// `table`: the one that an error names, when rows of several are written together.
    async fn write_batch(
        &self,
        rounds: u32,
        table: Table,
        requests: HashMap<String, Vec<WriteRequest>>,
    ) -> Result<()> {
        let mut call = self.db.batch_write_item().set_request_items(Some(requests));
        for round in 1..=rounds {
            if !self.pauses.before(round).await {
                break;
            }
            let written = call.send_by(&self.way).await;
            match written.map_err(|e| StoreError::aws("BatchWriteItem", table, &e)) {
                Ok(out) => match out.unprocessed_items {
                    Some(left) if !left.is_empty() => call = call.set_request_items(Some(left)),
                    _ => return Ok(()),
                },
                // Of none of them: no other than what some of them would say.
                Err(error) if error.is_throttling() => {}
                Err(error) => return Err(error),
            }
        }
        Err(StoreError::not_served("BatchWriteItem", table))
    }

    /// Deletes a row; one that is not there is no error.
    pub(crate) async fn remove(&self, table: Table, key: &Key) -> Result<()> {
        let gone = self.db.delete_item().table_name(self.name(table)).set_key(Some(key.attributes()));
        let gone = self.on_row(|| gone.send_by(&self.way)).await;
        gone.map(drop).map_err(|e| StoreError::aws("DeleteItem", table, &e))
    }

    /// Deletes a row if `condition` holds.
    pub(crate) async fn remove_when(
        &self,
        table: Table,
        key: &Key,
        condition: &str,
        values: Attributes,
    ) -> Result<Write> {
        let gone = self
            .db
            .delete_item()
            .table_name(self.name(table))
            .set_key(Some(key.attributes()))
            .condition_expression(condition)
            .set_expression_attribute_values(Some(values).filter(|v| !v.is_empty()));
        let gone = self.on_row(|| gone.send_by(&self.way)).await;
        match gone {
            Ok(_) => Ok(Write::Done),
            Err(e) if is_condition(&e) => Ok(Write::Refused),
            Err(e) => Err(StoreError::aws("DeleteItem", table, &e)),
        }
    }

    pub(crate) async fn update(&self, update: Update) -> Result<Updated> {
        let table = update.table;
        let done = self
            .db
            .update_item()
            .table_name(self.name(table))
            .set_key(Some(update.key.attributes()))
            .update_expression(update.changes)
            .set_condition_expression(update.condition)
            .set_expression_attribute_values(Some(update.values).filter(|v| !v.is_empty()))
            .set_expression_attribute_names(Some(update.names).filter(|n| !n.is_empty()))
            .return_values(ReturnValue::AllNew)
            .return_values_on_condition_check_failure(ReturnValuesOnConditionCheckFailure::AllOld);
        let done = self.on_row(|| done.send_by(&self.way)).await;
        match done {
            Ok(out) => Ok(Updated::Done(out.attributes.unwrap_or_default())),
            Err(e) => match e.as_service_error() {
                Some(aws_sdk_dynamodb::operation::update_item::UpdateItemError::ConditionalCheckFailedException(c)) => {
                    Ok(Updated::Refused(c.item().cloned().filter(|item| !item.is_empty())))
                }
                _ => Err(StoreError::aws("UpdateItem", table, &e)),
            },
        }
    }

    pub(crate) async fn query(&self, query: Query) -> Result<Page<Attributes>> {
        let table = query.table;
        let mut call = self
            .db
            .query()
            .table_name(self.name(table))
            .expression_attribute_values(":pk", text(&*query.pk))
            .set_limit(query.limit)
            .consistent_read(query.consistent)
            .scan_index_forward(!query.descending);
        let condition = match query.sorted {
            Sorted::All => format!("{PARTITION_KEY} = :pk"),
            Sorted::Prefix(prefix) => {
                call = call.expression_attribute_values(":a", text(prefix));
                format!("{PARTITION_KEY} = :pk AND begins_with({SORT_KEY}, :a)")
            }
            Sorted::Between(first, last) => {
                call = call.expression_attribute_values(":a", text(first));
                call = call.expression_attribute_values(":b", text(last));
                format!("{PARTITION_KEY} = :pk AND {SORT_KEY} BETWEEN :a AND :b")
            }
        };
        if let Some(after) = query.after {
            call = call.set_exclusive_start_key(Some(Key::new(query.pk, after).attributes()));
        }
        let out = call.key_condition_expression(condition).send_by(&self.way).await;
        let out = out.map_err(|e| StoreError::aws("Query", table, &e))?;
        let next = out.last_evaluated_key.as_ref().and_then(|key| key.get(SORT_KEY)?.as_s().ok()).cloned();
        Ok(Page::new(out.items.unwrap_or_default(), next))
    }

    /// A page of a whole table, in no order that says anything, read consistently. `after` is the `next` of the page before.
    pub(crate) async fn scan(&self, table: Table, after: Option<String>) -> Result<Page<Attributes>> {
        let after = after.as_deref().and_then(|after| after.split_once(PLACE));
        let scan = self
            .db
            .scan()
            .table_name(self.name(table))
            .consistent_read(true)
            .set_exclusive_start_key(after.map(|(pk, sk)| Key::new(pk, sk).attributes()));
        let out = Box::pin(scan.send()).await;
        let out = out.map_err(|e| StoreError::aws("Scan", table, &e))?;
        let part = |name: &str| out.last_evaluated_key.as_ref()?.get(name)?.as_s().ok();
        let next = part(PARTITION_KEY).zip(part(SORT_KEY)).map(|(pk, sk)| format!("{pk}{PLACE}{sk}"));
        Ok(Page::new(out.items.unwrap_or_default(), next))
    }

    /// The keys of a page of a whole table, of at most `limit` rows, read eventually. `after` is the `next` of the page before.
    pub(crate) async fn scan_keys(
        &self,
        table: Table,
        after: Option<String>,
        limit: i32,
    ) -> Result<Page<Key>> {
        let after = after.as_deref().and_then(|after| after.split_once(PLACE));
        let scan = self
            .db
            .scan()
            .table_name(self.name(table))
            .projection_expression(format!("{PARTITION_KEY}, {SORT_KEY}"))
            .limit(limit)
            .set_exclusive_start_key(after.map(|(pk, sk)| Key::new(pk, sk).attributes()));
        let out = Box::pin(scan.send()).await;
        let out = out.map_err(|e| StoreError::aws("Scan", table, &e))?;
        let key = |row: &Attributes| Item::new(table, row).key();
        let next = out.last_evaluated_key.as_ref().map(key).transpose()?;
        let rows = out.items.unwrap_or_default().iter().map(key).collect::<Result<Vec<Key>>>()?;
        Ok(Page::new(rows, next.map(|Key { pk, sk }| format!("{pk}{PLACE}{sk}"))))
    }

    pub(crate) fn update_item_of(&self, update: Update) -> Result<TransactWriteItem> {
        let table = update.table;
        let built = aws_sdk_dynamodb::types::Update::builder()
            .table_name(self.name(table))
            .set_key(Some(update.key.attributes()))
            .update_expression(update.changes)
            .set_condition_expression(update.condition)
            .set_expression_attribute_values(Some(update.values).filter(|v| !v.is_empty()))
            .set_expression_attribute_names(Some(update.names).filter(|n| !n.is_empty()))
            .build()
            .map_err(unbuilt(table))?;
        Ok(TransactWriteItem::builder().update(built).build())
    }

    /// A row that is refused unless `condition` holds of what is there.
    pub(crate) fn put_when_item_of(
        &self,
        table: Table,
        row: Row,
        condition: &str,
        values: Attributes,
    ) -> Result<TransactWriteItem> {
        let built = aws_sdk_dynamodb::types::Put::builder()
            .table_name(self.name(table))
            .set_item(Some(row.into_attributes()))
            .condition_expression(condition)
            .set_expression_attribute_values(Some(values).filter(|v| !v.is_empty()))
            .build()
            .map_err(unbuilt(table))?;
        Ok(TransactWriteItem::builder().put(built).build())
    }

    /// A removal that is refused unless `condition` holds.
    pub(crate) fn delete_when_item_of(
        &self,
        table: Table,
        key: &Key,
        condition: &str,
        values: Attributes,
    ) -> Result<TransactWriteItem> {
        let built = aws_sdk_dynamodb::types::Delete::builder()
            .table_name(self.name(table))
            .set_key(Some(key.attributes()))
            .condition_expression(condition)
            .set_expression_attribute_values(Some(values).filter(|v| !v.is_empty()))
            .build()
            .map_err(unbuilt(table))?;
        Ok(TransactWriteItem::builder().delete(built).build())
    }

    /// Writes all or nothing. `Refused` when a condition did not hold. When another call was at one of the rows, or one was
    /// asked too much of, nothing was written, and it is tried again a few times; the SDK does not do that by itself.
    pub(crate) async fn transact(&self, table: Table, items: Vec<TransactWriteItem>) -> Result<Write> {
        let mut round = 1;
        loop {
            let call = self.db.transact_write_items().set_transact_items(Some(items.clone()));
            let Err(error) = Box::pin(call.send()).await else { return Ok(Write::Done) };
            let reasons = match error.as_service_error() {
                Some(TransactWriteItemsError::TransactionCanceledException(c)) => c.cancellation_reasons(),
                _ => &[],
            };
            let because = |codes: &[&str]| {
                reasons.iter().any(|reason| reason.code().is_some_and(|code| codes.contains(&code)))
            };
            if because(&["ConditionalCheckFailed"]) {
                return Ok(Write::Refused);
            }
            round += 1;
            let may_pass = round <= WRITE_ROUNDS + 1 && because(&PASSING_REASONS);
            if !may_pass || !self.pauses.before(round).await {
                return Err(StoreError::aws("TransactWriteItems", table, &error));
            }
        }
    }
}

/// A request that lacks something: nobody can send it.
pub(crate) fn unbuilt(table: Table) -> impl Fn(aws_sdk_dynamodb::error::BuildError) -> StoreError {
    move |error| StoreError::Corrupt { table, key: String::new(), reason: error.to_string() }
}

pub(crate) fn is_condition<E: ProvideErrorMetadata>(error: &SdkError<E, HttpResponse>) -> bool {
    error.code() == Some("ConditionalCheckFailedException")
}
