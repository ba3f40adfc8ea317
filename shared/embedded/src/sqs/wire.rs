//! The JSON protocol's requests and responses, as far as they are served.

use std::borrow::{Borrow, Cow};
use std::collections::BTreeMap;
use std::ops::Deref;

use serde::{Deserialize, Serialize};

/// Text as it stands in what it was read from, if nothing in it is escaped there.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Deserialize, Serialize)]
#[serde(transparent)]
pub(super) struct Text<'a>(#[serde(borrow)] Cow<'a, str>);

impl Deref for Text<'_> {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}

impl Borrow<str> for Text<'_> {
    fn borrow(&self) -> &str {
        self
    }
}

impl<'a> From<&'a str> for Text<'a> {
    fn from(text: &'a str) -> Self {
        Self(text.into())
    }
}

impl From<String> for Text<'_> {
    fn from(text: String) -> Self {
        Self(text.into())
    }
}

/// One attribute of a message, sent and received alike. Binary values are base64, as they travel.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct MessageAttribute<'a> {
    #[serde(default, borrow)]
    pub(super) data_type: Text<'a>,
    #[serde(default, borrow, skip_serializing_if = "Option::is_none")]
    pub(super) string_value: Option<Text<'a>>,
    #[serde(default, borrow, skip_serializing_if = "Option::is_none")]
    pub(super) binary_value: Option<Text<'a>>,
}

impl MessageAttribute<'_> {
    /// The bytes that count as payload, the attribute's name included.
    pub(super) fn bytes(&self, name: &str) -> usize {
        let text = self.string_value.as_ref().map_or(0, |value| value.len());
        let binary = self.binary_value.as_ref().map_or(0, |value| value.trim_end_matches('=').len() * 3 / 4);
        name.len() + self.data_type.len() + text + binary
    }
}

/// The attributes of a message by name, in the order in which their digest takes them.
pub(super) type MessageAttributes<'a> = BTreeMap<Text<'a>, MessageAttribute<'a>>;

macro_rules! requests {
    ($($(#[$doc:meta])* $name:ident $(<$text:lifetime>)? { $($(#[$attribute:meta])* $field:ident: $type:ty),* $(,)? })*) => {$(
        $(#[$doc])*
        #[derive(Debug, Default, Deserialize)]
        #[serde(rename_all = "PascalCase", default)]
        pub(super) struct $name $(<$text>)? { $($(#[$attribute])* pub(super) $field: $type),* }
    )*};
}

requests! {
    CreateQueue { queue_name: String, attributes: BTreeMap<String, String>, #[serde(rename = "tags")] tags: BTreeMap<String, String> }
    GetQueueUrl { queue_name: String }
    ListQueues { queue_name_prefix: String, max_results: Option<usize>, next_token: Option<String> }
    OneQueue { queue_url: String }
    /// All that a request can name a queue by.
    Named { queue_url: String, queue_name: String, attributes: BTreeMap<String, String> }
    GetQueueAttributes { queue_url: String, attribute_names: Vec<String> }
    SetQueueAttributes { queue_url: String, attributes: BTreeMap<String, String> }
    TagQueue { queue_url: String, tags: BTreeMap<String, String> }
    UntagQueue { queue_url: String, tag_keys: Vec<String> }
    SendMessage<'a> {
        queue_url: String,
        #[serde(borrow)] message_body: Option<Text<'a>>,
        delay_seconds: Option<i64>,
        #[serde(borrow)] message_attributes: MessageAttributes<'a>,
        #[serde(borrow)] message_system_attributes: MessageAttributes<'a>,
        #[serde(borrow)] message_deduplication_id: Option<Text<'a>>,
        #[serde(borrow)] message_group_id: Option<Text<'a>>,
    }
    SendMessageBatch<'a> { queue_url: String, #[serde(borrow)] entries: Vec<SendEntry<'a>> }
    SendEntry<'a> {
        #[serde(borrow)] id: Text<'a>,
        #[serde(borrow)] message_body: Option<Text<'a>>,
        delay_seconds: Option<i64>,
        #[serde(borrow)] message_attributes: MessageAttributes<'a>,
        #[serde(borrow)] message_system_attributes: MessageAttributes<'a>,
        #[serde(borrow)] message_deduplication_id: Option<Text<'a>>,
        #[serde(borrow)] message_group_id: Option<Text<'a>>,
    }
    ReceiveMessage {
        queue_url: String,
        attribute_names: Vec<String>,
        message_system_attribute_names: Vec<String>,
        message_attribute_names: Vec<String>,
        max_number_of_messages: Option<i64>,
        visibility_timeout: Option<i64>,
        wait_time_seconds: Option<i64>,
    }
    DeleteMessage { queue_url: String, receipt_handle: String }
    DeleteMessageBatch { queue_url: String, entries: Vec<DeleteEntry> }
    DeleteEntry { id: String, receipt_handle: String }
    ChangeMessageVisibility { queue_url: String, receipt_handle: String, visibility_timeout: Option<i64> }
    ChangeMessageVisibilityBatch { queue_url: String, entries: Vec<VisibilityEntry> }
    VisibilityEntry { id: String, receipt_handle: String, visibility_timeout: Option<i64> }
}

impl<'a> From<SendMessage<'a>> for SendEntry<'a> {
    fn from(request: SendMessage<'a>) -> Self {
        Self {
            id: Text::default(),
            message_body: request.message_body,
            delay_seconds: request.delay_seconds,
            message_attributes: request.message_attributes,
            message_system_attributes: request.message_system_attributes,
            message_deduplication_id: request.message_deduplication_id,
            message_group_id: request.message_group_id,
        }
    }
}

/// What a sender learns of a message.
#[derive(Debug, Serialize)]
pub(super) struct Sent {
    #[serde(rename = "Id", skip_serializing_if = "String::is_empty")]
    pub(super) id: String,
    #[serde(rename = "MessageId")]
    pub(super) message_id: String,
    #[serde(rename = "MD5OfMessageBody")]
    pub(super) md5_of_body: String,
    #[serde(rename = "MD5OfMessageAttributes", skip_serializing_if = "Option::is_none")]
    pub(super) md5_of_attributes: Option<String>,
    #[serde(rename = "MD5OfMessageSystemAttributes", skip_serializing_if = "Option::is_none")]
    pub(super) md5_of_system_attributes: Option<String>,
    #[serde(rename = "SequenceNumber", skip_serializing_if = "Option::is_none")]
    pub(super) sequence_number: Option<String>,
}

/// What a consumer gets.
#[derive(Debug, Serialize)]
pub(super) struct Received<'a> {
    #[serde(rename = "MessageId")]
    pub(super) message_id: String,
    #[serde(rename = "ReceiptHandle")]
    pub(super) receipt_handle: String,
    #[serde(rename = "MD5OfBody")]
    pub(super) md5_of_body: String,
    #[serde(rename = "Body")]
    pub(super) body: &'a str,
    #[serde(rename = "Attributes", skip_serializing_if = "BTreeMap::is_empty")]
    pub(super) attributes: BTreeMap<&'static str, String>,
    #[serde(rename = "MD5OfMessageAttributes", skip_serializing_if = "Option::is_none")]
    pub(super) md5_of_attributes: Option<String>,
    #[serde(rename = "MessageAttributes", skip_serializing_if = "BTreeMap::is_empty")]
    pub(super) message_attributes: MessageAttributes<'a>,
}

impl Received<'_> {
    /// The bytes that count as payload.
    pub(super) fn payload_bytes(&self) -> usize {
        self.body.len()
            + self.message_attributes.iter().map(|(name, attribute)| attribute.bytes(name)).sum::<usize>()
    }
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct Messages<'a> {
    pub(super) messages: &'a [Received<'a>],
}

/// A batch entry that succeeded and has nothing more to say.
#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct Done {
    pub(super) id: String,
}

/// A batch entry that failed.
#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct Failed {
    pub(super) id: String,
    pub(super) sender_fault: bool,
    pub(super) code: &'static str,
    pub(super) message: String,
}

/// The outcome of a batch request, entry by entry. AWS leaves the list of failures out when there are none; the list of
/// successes is always there.
#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct BatchOutcome<T> {
    pub(super) successful: Vec<T>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) failed: Vec<Failed>,
}

impl<T> BatchOutcome<T> {
    /// The same, with what is told of each entry that succeeded.
    pub(super) fn map<U>(self, tell: impl FnMut(T) -> U) -> BatchOutcome<U> {
        BatchOutcome { successful: self.successful.into_iter().map(tell).collect(), failed: self.failed }
    }
}
