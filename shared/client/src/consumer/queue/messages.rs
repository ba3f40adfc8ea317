//! The queue that events come from: the few calls of SQS that a consumer makes.

use std::time::Duration;

use aws_sdk_sqs::error::DisplayErrorContext;
use aws_sdk_sqs::operation::change_message_visibility_batch::ChangeMessageVisibilityBatchOutput;
use aws_sdk_sqs::operation::delete_message_batch::DeleteMessageBatchOutput;
use aws_sdk_sqs::types::{
    BatchResultErrorEntry, ChangeMessageVisibilityBatchRequestEntry, DeleteMessageBatchRequestEntry,
    MessageSystemAttributeName,
};
use tracing::warn;

use crate::consumer::calls::Boxed;
use crate::consumer::limits;

/// A message that was received.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Message {
    pub(crate) message_id: String,
    pub(crate) receipt_handle: String,
    pub(crate) body: String,
    pub(crate) receive_count: u32,
}

/// One queue, behind an interface so that tests stand in for it.
pub(crate) trait Queue: Send + Sync {
    /// Up to `most` messages (10 at the most), which stay invisible for `visibility`.
    fn receive(
        &self,
        most: usize,
        wait: Duration,
        visibility: Duration,
    ) -> Boxed<'_, Result<Vec<Message>, String>>;

    /// Deletes messages. What cannot be deleted is logged: it comes again, and its outcome is known by then.
    fn delete<'a>(&'a self, messages: &'a [Message]) -> Boxed<'a, ()>;

    /// Makes messages visible again after so long from now. What cannot be changed is logged.
    fn set_visibility<'a>(&'a self, messages: &'a [Message], after: Duration) -> Boxed<'a, ()>;
}

/// A queue of SQS.
#[derive(Debug)]
pub(crate) struct SqsQueue {
    pub(crate) sqs: aws_sdk_sqs::Client,
    pub(crate) url: String,
}

impl Queue for SqsQueue {
    fn receive(
        &self,
        most: usize,
        wait: Duration,
        visibility: Duration,
    ) -> Boxed<'_, Result<Vec<Message>, String>> {
        let most = i32::try_from(most.min(limits::MESSAGES_PER_BATCH)).unwrap_or(1);
        let receive = self.sqs.receive_message().queue_url(&self.url).max_number_of_messages(most);
        let receive =
            receive.wait_time_seconds(whole_seconds(wait)).visibility_timeout(whole_seconds(visibility));
        let receive =
            receive.message_system_attribute_names(MessageSystemAttributeName::ApproximateReceiveCount);
        Box::pin(async move {
            match receive.send().await {
                Ok(received) => Ok(received.messages.unwrap_or_default().into_iter().map(read).collect()),
                Err(error) => Err(DisplayErrorContext(error).to_string()),
            }
        })
    }

    fn delete<'a>(&'a self, messages: &'a [Message]) -> Boxed<'a, ()> {
        Box::pin(async move {
            for batch in messages.chunks(limits::MESSAGES_PER_BATCH) {
                let entries = entries(batch, |id, handle| {
                    DeleteMessageBatchRequestEntry::builder().id(id).receipt_handle(handle).build()
                });
                let delete = self.sqs.delete_message_batch().queue_url(&self.url).set_entries(entries);
                let answer = delete.send().await.map_err(|error| DisplayErrorContext(error).to_string());
                log_failures("delete", batch, answer.map(|DeleteMessageBatchOutput { failed, .. }| failed));
            }
        })
    }

    fn set_visibility<'a>(&'a self, messages: &'a [Message], after: Duration) -> Boxed<'a, ()> {
        Box::pin(async move {
            for batch in messages.chunks(limits::MESSAGES_PER_BATCH) {
                let entries = entries(batch, |id, handle| {
                    let entry =
                        ChangeMessageVisibilityBatchRequestEntry::builder().id(id).receipt_handle(handle);
                    entry.visibility_timeout(whole_seconds(after)).build()
                });
                let change = self.sqs.change_message_visibility_batch().queue_url(&self.url);
                let answer = change.set_entries(entries).send().await;
                let answer = answer.map_err(|error| DisplayErrorContext(error).to_string());
                let failed = answer.map(|ChangeMessageVisibilityBatchOutput { failed, .. }| failed);
                log_failures("change the visibility of", batch, failed);
            }
        })
    }
}

/// An entry for each message, whose id is the message's place in the batch.
fn entries<E, X>(batch: &[Message], entry: impl Fn(String, &str) -> Result<E, X>) -> Option<Vec<E>> {
    batch.iter().enumerate().map(|(i, message)| entry(i.to_string(), &message.receipt_handle).ok()).collect()
}

fn log_failures(what: &str, batch: &[Message], failed: Result<Vec<BatchResultErrorEntry>, String>) {
    match failed {
        Err(error) => warn!(error, "failed to {what} {} messages", batch.len()),
        Ok(failed) => {
            for entry in failed {
                let message = entry.id.parse().ok().and_then(|place: usize| batch.get(place));
                let (message_id, error) = (message.map(|m| &*m.message_id), entry.message());
                warn!(message_id, code = entry.code, error, "failed to {what} a message");
            }
        }
    }
}

fn whole_seconds(duration: Duration) -> i32 {
    i32::try_from(duration.as_secs()).unwrap_or(i32::MAX)
}

fn read(message: aws_sdk_sqs::types::Message) -> Message {
    let receive_count = message
        .attributes
        .as_ref()
        .and_then(|attributes| attributes.get(&MessageSystemAttributeName::ApproximateReceiveCount))
        .and_then(|count| count.parse().ok());
    Message {
        message_id: message.message_id.unwrap_or_default(),
        receipt_handle: message.receipt_handle.unwrap_or_default(),
        body: message.body.unwrap_or_default(),
        receive_count: receive_count.unwrap_or(1),
    }
}
