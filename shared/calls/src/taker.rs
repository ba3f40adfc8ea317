//! What a service in this process takes as it is: the calls that are made most and have most that would be written and read.

use std::fmt::Debug;
use std::pin::Pin;

use aws_sdk_dynamodb::operation::batch_get_item::BatchGetItemOutput;
use aws_sdk_dynamodb::operation::batch_get_item::builders::BatchGetItemInputBuilder;
use aws_sdk_dynamodb::operation::batch_write_item::BatchWriteItemOutput;
use aws_sdk_dynamodb::operation::batch_write_item::builders::BatchWriteItemInputBuilder;
use aws_sdk_dynamodb::operation::put_item::PutItemOutput;
use aws_sdk_dynamodb::operation::put_item::builders::PutItemInputBuilder;
use aws_sdk_dynamodb::operation::update_item::UpdateItemOutput;
use aws_sdk_dynamodb::operation::update_item::builders::UpdateItemInputBuilder;

use crate::{BatchEntry, RefusedEntry};

/// Services in this process that take calls as they are. Each answers with nothing where a call is to be made as a request after
/// all: nothing of it was done then.
pub trait TakesCalls: Debug + Send + Sync {
    /// Sends a batch to the queue at a URL, and answers with what was not taken.
    fn send_batch<'a>(
        &'a self,
        queue_url: &'a str,
        batch: &'a [BatchEntry<'a>],
    ) -> Taken<'a, Vec<RefusedEntry>>;

    /// Reads rows by their keys.
    fn batch_get_item<'a>(&'a self, call: &'a BatchGetItemInputBuilder) -> Taken<'a, BatchGetItemOutput>;

    /// Puts and deletes rows.
    fn batch_write_item<'a>(
        &'a self,
        call: &'a BatchWriteItemInputBuilder,
    ) -> Taken<'a, BatchWriteItemOutput>;

    /// Puts a row.
    fn put_item<'a>(&'a self, call: &'a PutItemInputBuilder) -> Taken<'a, PutItemOutput>;

    /// Updates a row.
    fn update_item<'a>(&'a self, call: &'a UpdateItemInputBuilder) -> Taken<'a, UpdateItemOutput>;
}

/// A call on its way to who takes it as it is.
pub type Taken<'a, T> = Pin<Box<dyn Future<Output = Option<T>> + Send + 'a>>;
