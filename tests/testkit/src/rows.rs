//! The rows of a table as they are stored: to look at, to spoil and to restore.

use std::collections::HashMap;

use anyhow::{Context as _, Result};
use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::types::{AttributeValue, DeleteRequest, PutRequest, WriteRequest};
use tidegate_store::tables::{PARTITION_KEY, SORT_KEY, Table};

use crate::PREFIX;

/// Rows that one batch call writes.
const ROWS_PER_CALL: usize = 25;

/// The attributes of a row, by name.
pub type Row = HashMap<String, AttributeValue>;

/// All rows of a table as it is.
///
/// # Errors
/// When DynamoDB refuses.
pub async fn all(db: &Client, table: Table) -> Result<Vec<Row>> {
    let (mut rows, mut after) = (Vec::new(), None);
    loop {
        let page = db.scan().table_name(name(table)).consistent_read(true);
        let page = page.set_exclusive_start_key(after).send().await?;
        rows.extend(page.items.unwrap_or_default());
        after = page.last_evaluated_key;
        if after.is_none() {
            return Ok(rows);
        }
    }
}

/// Puts a row, over the one with its key.
///
/// # Errors
/// When DynamoDB refuses.
pub async fn put(db: &Client, table: Table, row: Row) -> Result<()> {
    db.put_item().table_name(name(table)).set_item(Some(row)).send().await?;
    Ok(())
}

/// Makes a table have these rows, and no others.
///
/// # Errors
/// When DynamoDB refuses.
pub async fn replace_all(db: &Client, table: Table, rows: Vec<Row>) -> Result<()> {
    let mut requests = Vec::new();
    for row in all(db, table).await? {
        let key = row.into_iter().filter(|(name, _)| [PARTITION_KEY, SORT_KEY].contains(&&**name));
        let delete = DeleteRequest::builder().set_key(Some(key.collect())).build()?;
        requests.push(WriteRequest::builder().delete_request(delete).build());
    }
    write(db, table, requests).await?;
    let mut requests = Vec::new();
    for row in rows {
        let put = PutRequest::builder().set_item(Some(row)).build()?;
        requests.push(WriteRequest::builder().put_request(put).build());
    }
    write(db, table, requests).await
}

async fn write(db: &Client, table: Table, requests: Vec<WriteRequest>) -> Result<()> {
    for some in requests.chunks(ROWS_PER_CALL) {
        let batch = db.batch_write_item().request_items(name(table), some.to_vec());
        batch.send().await.with_context(|| format!("failed to write rows of table {}", table.name()))?;
    }
    Ok(())
}

fn name(table: Table) -> String {
    format!("{PREFIX}-{}", table.name())
}
