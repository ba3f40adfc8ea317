//! Batches that are handed over as they are, by who is in this process: nothing of them is written, read or digested.

use tidegate_calls::{Attribute, BatchEntry, RefusedEntry};

use super::wire::{Failed, MessageAttribute, SendEntry, Text};
use super::{Sqs, message, name, send};
use crate::meter::Meter;

impl Sqs {
    /// Sends a batch. Nothing when it is refused as a whole or fails: nothing of it is in the queue then, and who sends it as a
    /// request learns why.
    pub(crate) async fn send_batch(
        &self,
        url: &str,
        batch: &[BatchEntry<'_>],
        meter: &Meter,
    ) -> Option<Vec<RefusedEntry>> {
        let entries: Vec<SendEntry<'_>> =
            (0..).zip(batch).map(|(index, entry)| SendEntry::handed_over(index, entry)).collect();
        let sent = self.take_in(url, |desk| send::many(desk, &entries)).await.ok()?;
        let payload_bytes = entries.iter().map(message::size).sum();
        let queue = name::in_url(url).unwrap_or_default();
        meter.sqs(queue, "SendMessageBatch", payload_bytes, sent.successful.len());
        Some(sent.failed.into_iter().filter_map(Failed::told).collect())
    }
}

impl<'a> SendEntry<'a> {
    fn handed_over(index: usize, entry: &'a BatchEntry<'_>) -> Self {
        let attribute = |Attribute { name, kind, value }: &'a Attribute| {
            let value = Some(Text::from(value.as_str()));
            let (data_type, binary_value) = (Text::from(*kind), None);
            (Text::from(*name), MessageAttribute { data_type, string_value: value, binary_value })
        };
        Self {
            id: index.to_string().into(),
            message_body: Some((&*entry.body).into()),
            delay_seconds: entry.delay_seconds.map(i64::from),
            message_attributes: entry.attributes.iter().map(attribute).collect(),
            message_deduplication_id: entry.deduplication_id.as_deref().map(Text::from),
            message_group_id: entry.group_id.as_deref().map(Text::from),
            ..Self::default()
        }
    }
}

impl Failed {
    fn told(self) -> Option<RefusedEntry> {
        let Self { id, sender_fault, code, message } = self;
        Some(RefusedEntry { index: id.parse().ok()?, code: code.to_owned(), reason: message, sender_fault })
    }
}
