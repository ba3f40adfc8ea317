//! The parts of transactions that put and delete whole rows.

use aws_sdk_dynamodb::types::{Delete, Put, TransactWriteItem};

use crate::item::{Attributes, Key, Row, number};
use crate::rows::unbuilt;
use crate::tables::Table;
use crate::{Result, Store};

impl Store {
    pub(crate) fn put_new_item_of(&self, table: Table, row: Row) -> Result<TransactWriteItem> {
        self.put_when_item_of(table, row, "attribute_not_exists(pk)", Attributes::new())
    }

    /// A put in the place of the revision that was seen, or of nothing.
    pub(crate) fn guarded_put(&self, table: Table, row: Row, seen: Option<u32>) -> Result<TransactWriteItem> {
        match seen {
            None => self.put_new_item_of(table, row),
            Some(seen) => {
                let seen = Attributes::from([(":seen".to_owned(), number(seen))]);
                self.put_when_item_of(table, row, "rev = :seen", seen)
            }
        }
    }

    pub(crate) fn put_item_of(&self, table: Table, row: Row) -> Result<TransactWriteItem> {
        let put = Put::builder().table_name(self.name(table)).set_item(Some(row.into_attributes()));
        Ok(TransactWriteItem::builder().put(put.build().map_err(unbuilt(table))?).build())
    }

    pub(crate) fn delete_item_of(&self, table: Table, key: &Key) -> Result<TransactWriteItem> {
        let delete = Delete::builder().table_name(self.name(table)).set_key(Some(key.attributes()));
        Ok(TransactWriteItem::builder().delete(delete.build().map_err(unbuilt(table))?).build())
    }
}
