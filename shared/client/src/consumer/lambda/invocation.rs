//! What Lambda gives a function of an SQS event source, and what it reads of the answer.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// What Lambda gives a function of SQS, as far as it is read here.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SqsEvent {
    /// The messages.
    #[serde(rename = "Records")]
    pub records: Vec<SqsRecord>,
}

/// A message of SQS, as Lambda gives it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SqsRecord {
    /// The id of the message.
    pub message_id: String,
    /// The text of the message.
    #[serde(default)]
    pub body: String,
    /// System attributes, of which `ApproximateReceiveCount` is read.
    #[serde(default)]
    pub attributes: BTreeMap<String, String>,
}

impl SqsRecord {
    /// Whether it was received before this time.
    pub(super) fn came_before(&self) -> bool {
        let count = self.attributes.get("ApproximateReceiveCount").and_then(|count| count.parse().ok());
        count.unwrap_or(1) > 1
    }
}

/// The answer of a function to Lambda: which messages are to come again. The others are deleted.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SqsBatchResponse {
    /// One for each message that is to come again.
    pub batch_item_failures: Vec<BatchItemFailure>,
}

/// A message that is to come again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct BatchItemFailure {
    /// The id of the message.
    pub item_identifier: String,
}
