//! Batches of messages, as many as a call to SQS takes: what is sent most.
//!
//! A service in this process takes them as they are. For any other they are a request of the SDK.

use std::borrow::Cow;

use aws_sdk_sqs::Client;
use aws_sdk_sqs::error::BuildError;
use aws_sdk_sqs::operation::send_message_batch::SendMessageBatchError;
use aws_sdk_sqs::types::{BatchResultErrorEntry, MessageAttributeValue, SendMessageBatchRequestEntry};
use aws_smithy_runtime_api::client::orchestrator::HttpResponse;
use aws_smithy_runtime_api::client::result::SdkError;

use crate::{Call as _, Way};

/// A message of a batch, without the number that it goes by there.
#[derive(Debug, Clone, Default)]
pub struct BatchEntry<'a> {
    /// Its text.
    pub body: Cow<'a, str>,
    /// What stands beside its text, each name once.
    pub attributes: Vec<Attribute>,
    /// After how many seconds it comes.
    pub delay_seconds: Option<i32>,
    /// What it takes its turns with, or is in order with.
    pub group_id: Option<String>,
    /// By what a FIFO queue knows its repeats.
    pub deduplication_id: Option<String>,
}

/// An attribute of a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Attribute {
    /// Its name.
    pub name: &'static str,
    /// `String` or `Number`.
    pub kind: &'static str,
    /// Its value, as text.
    pub value: String,
}

impl Attribute {
    /// What it adds to the size of its message, in bytes.
    pub fn size(&self) -> usize {
        self.name.len().saturating_add(self.kind.len()).saturating_add(self.value.len())
    }
}

/// A message that was not taken, as others of its batch were.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RefusedEntry {
    /// Its place in the batch, from 0.
    pub index: usize,
    /// Why, in a word.
    pub code: String,
    /// Why.
    pub reason: String,
    /// Whether its sender is to blame: it will be refused each time.
    pub sender_fault: bool,
}

/// Sends a batch to the queue at a URL, and answers with what was not taken.
///
/// # Errors
/// The SDK's, whichever way it goes. Nothing is known then to be sent.
pub async fn send_batch(
    sqs: &Client,
    queue_url: &str,
    batch: &[BatchEntry<'_>],
    way: &Way,
) -> Result<Vec<RefusedEntry>, SdkError<SendMessageBatchError, HttpResponse>> {
    if let Some(taker) = way.taker()
        && let Some(refused) = taker.send_batch(queue_url, batch).await
    {
        return Ok(refused);
    }
    let entries = (0..).zip(batch).map(|(index, entry)| entry.request(index)).collect::<Result<_, _>>();
    let entries = entries.map_err(SdkError::construction_failure)?;
    let call = sqs.send_message_batch().queue_url(queue_url).set_entries(Some(entries));
    let sent = call.send_by(way).await?;
    Ok(sent.failed.into_iter().filter_map(RefusedEntry::read).collect())
}

impl BatchEntry<'_> {
    fn request(&self, index: usize) -> Result<SendMessageBatchRequestEntry, BuildError> {
        let mut request = SendMessageBatchRequestEntry::builder()
            .id(index.to_string())
            .message_body(&*self.body)
            .set_delay_seconds(self.delay_seconds)
            .set_message_group_id(self.group_id.clone())
            .set_message_deduplication_id(self.deduplication_id.clone());
        for Attribute { name, kind, value } in &self.attributes {
            let value = MessageAttributeValue::builder().data_type(*kind).string_value(value);
            request = request.message_attributes(*name, value.build()?);
        }
        request.build()
    }
}

impl RefusedEntry {
    fn read(failed: BatchResultErrorEntry) -> Option<Self> {
        let BatchResultErrorEntry { id, code, message, sender_fault, .. } = failed;
        let reason = message.unwrap_or_else(|| code.clone());
        Some(Self { index: id.parse().ok()?, code, reason, sender_fault })
    }
}
