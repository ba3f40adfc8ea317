//! Calls that are handed over as they are. Faults strike requests: where there are any, nothing is taken.

use aws_sdk_dynamodb::operation::batch_get_item::BatchGetItemOutput;
use aws_sdk_dynamodb::operation::batch_get_item::builders::BatchGetItemInputBuilder;
use aws_sdk_dynamodb::operation::batch_write_item::BatchWriteItemOutput;
use aws_sdk_dynamodb::operation::batch_write_item::builders::BatchWriteItemInputBuilder;
use aws_sdk_dynamodb::operation::put_item::PutItemOutput;
use aws_sdk_dynamodb::operation::put_item::builders::PutItemInputBuilder;
use aws_sdk_dynamodb::operation::update_item::UpdateItemOutput;
use aws_sdk_dynamodb::operation::update_item::builders::UpdateItemInputBuilder;
use tidegate_calls::{BatchEntry, RefusedEntry, Taken, TakesCalls};

use super::{Seam, Services};

impl Seam {
    /// The services, for who takes a call as it is.
    fn taking(&self) -> Option<&Services> {
        self.faults().is_none().then_some(&*self.services)
    }
}

impl TakesCalls for Seam {
    fn send_batch<'a>(
        &'a self,
        queue_url: &'a str,
        batch: &'a [BatchEntry<'a>],
    ) -> Taken<'a, Vec<RefusedEntry>> {
        Box::pin(async move {
            let services = self.taking()?;
            services.sqs.send_batch(queue_url, batch, &services.meter).await
        })
    }

    fn batch_get_item<'a>(&'a self, call: &'a BatchGetItemInputBuilder) -> Taken<'a, BatchGetItemOutput> {
        Box::pin(async move {
            let services = self.taking()?;
            services.dynamodb.batch_get_item(call, &services.meter)
        })
    }

    fn batch_write_item<'a>(
        &'a self,
        call: &'a BatchWriteItemInputBuilder,
    ) -> Taken<'a, BatchWriteItemOutput> {
        Box::pin(async move {
            let services = self.taking()?;
            services.dynamodb.batch_write_item(call, &services.meter).await
        })
    }

    fn put_item<'a>(&'a self, call: &'a PutItemInputBuilder) -> Taken<'a, PutItemOutput> {
        Box::pin(async move {
            let services = self.taking()?;
            services.dynamodb.put_item(call, &services.meter).await
        })
    }

    fn update_item<'a>(&'a self, call: &'a UpdateItemInputBuilder) -> Taken<'a, UpdateItemOutput> {
        Box::pin(async move {
            let services = self.taking()?;
            services.dynamodb.update_item(call, &services.meter).await
        })
    }
}
