//! Calls that are handed over as they are, by who is in this process: nothing of them is written but what is stored.
//!
//! Each answers with nothing where the call is to be made as a request: the tables are in memory, it is not plain, or it is refused
//! or fails, of which a request tells why. Nothing is written then.

use std::collections::HashMap;

use aws_sdk_dynamodb::operation::batch_get_item::BatchGetItemOutput;
use aws_sdk_dynamodb::operation::batch_get_item::builders::BatchGetItemInputBuilder;
use aws_sdk_dynamodb::operation::batch_write_item::BatchWriteItemOutput;
use aws_sdk_dynamodb::operation::batch_write_item::builders::BatchWriteItemInputBuilder;
use aws_sdk_dynamodb::operation::put_item::PutItemOutput;
use aws_sdk_dynamodb::operation::put_item::builders::PutItemInputBuilder;
use aws_sdk_dynamodb::operation::update_item::UpdateItemOutput;
use aws_sdk_dynamodb::operation::update_item::builders::UpdateItemInputBuilder;

use super::DynamoDb;
use super::direct::{RowWrites, Update, attributes};
use super::dispatch::count;
use crate::meter::Meter;

impl DynamoDb {
    pub(crate) async fn batch_write_item(
        &self,
        call: &BatchWriteItemInputBuilder,
        meter: &Meter,
    ) -> Option<BatchWriteItemOutput> {
        let file = self.file.as_ref()?;
        let rows = RowWrites::of_batch_call(&file.reader, call)?;
        let written = file.writer.run_among_others(move |on| rows.make(on)).await.ok()??;
        count(meter, "BatchWriteItem", written);
        Some(BatchWriteItemOutput::builder().build())
    }

    pub(crate) fn batch_get_item(
        &self,
        call: &BatchGetItemInputBuilder,
        meter: &Meter,
    ) -> Option<BatchGetItemOutput> {
        let read = self.file.as_ref()?.reader.batch_get_call(call)?;
        let rows = count(meter, "BatchGetItem", read);
        let answer = BatchGetItemOutput::builder().set_responses(Some(rows));
        Some(answer.set_unprocessed_keys(Some(HashMap::new())).build())
    }

    pub(crate) async fn put_item(&self, call: &PutItemInputBuilder, meter: &Meter) -> Option<PutItemOutput> {
        let file = self.file.as_ref()?;
        let rows = RowWrites::of_put_call(&file.reader, call)?;
        let written = file.writer.run(move |on| rows.make(on)).await.ok()??;
        count(meter, "PutItem", written);
        Some(PutItemOutput::builder().build())
    }

    pub(crate) async fn update_item(
        &self,
        call: &UpdateItemInputBuilder,
        meter: &Meter,
    ) -> Option<UpdateItemOutput> {
        let file = self.file.as_ref()?;
        let update = Update::of_call(&file.reader, call)?;
        let told = |row: Option<&str>| match row {
            Some(json) => attributes(json).map(Some),
            None => Some(None),
        };
        let updated = file.writer.run(move |on| update.make(on, told)).await.ok()?.ok()?;
        let row = count(meter, "UpdateItem", updated);
        Some(UpdateItemOutput::builder().set_attributes(row).build())
    }
}
