//! Sending to queues: our own dispatch queue, and a look at a consumer's.

use aws_sdk_sqs::error::ProvideErrorMetadata;
use aws_sdk_sqs::types::{QueueAttributeName, SendMessageBatchRequestEntry};
use chrono::{DateTime, Utc};
use futures::stream::{self, StreamExt, TryStreamExt};
use tidegate_domain::ids::ClientId;
use tidegate_domain::limits::{SQS_BATCH, SQS_DELAY_SECONDS, WRITE_ROUNDS};

use crate::message::Message;
use crate::{Config, Engine, EngineError};

/// A message that comes more than this before it is due was cut short by the longest delay of SQS, in seconds. Within it,
/// clocks that differ may be the reason.
const EARLY_SECONDS: i64 = 60;
/// Batch calls under way at once.
const CALLS_AT_ONCE: usize = 8;

/// A message for the dispatch queue.
#[derive(Debug, Clone)]
pub(crate) struct Outgoing {
    message: Message,
    /// The fair-queue group: a noisy client delays itself only.
    client: ClientId,
    not_before: Option<DateTime<Utc>>,
}

impl Outgoing {
    pub(crate) fn now(client: &ClientId, message: Message) -> Self {
        Self { message, client: client.clone(), not_before: None }
    }

    /// A message that is seen at `not_before` or up to a second later, never earlier.
    pub(crate) fn at(client: &ClientId, message: Message, not_before: DateTime<Utc>) -> Self {
        Self { message, client: client.clone(), not_before: Some(not_before) }
    }

    fn delay_seconds(&self, now: DateTime<Utc>) -> i32 {
        let Some(not_before) = self.not_before else { return 0 };
        let ms = (not_before - now).num_milliseconds().max(0);
        let seconds = (ms + 999) / 1_000;
        i32::try_from(seconds).unwrap_or(i32::MAX).min(SQS_DELAY_SECONDS as i32)
    }
}

/// What a look at a consumer's queue told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum QueueCheck {
    /// It is there.
    Exists {
        /// A FIFO queue.
        fifo: bool,
    },
    /// There is none under this URL.
    Missing,
    /// It is one of our own: the dispatch queue or its dead letters.
    Ours,
    /// SQS did not say.
    Unknown(String),
}

impl Engine {
    /// Sends messages to the dispatch queue, ten to a call. Entries that are refused are sent again a few times.
    ///
    /// # Errors
    /// When some were not taken. Those that were are handled all the same: whatever sends again must be idempotent.
    pub(crate) async fn dispatch(&self, messages: &[Outgoing]) -> Result<(), EngineError> {
        let calls: Vec<_> = messages.chunks(SQS_BATCH).map(|batch| self.dispatch_batch(batch)).collect();
        stream::iter(calls).buffer_unordered(CALLS_AT_ONCE).try_collect().await
    }

    async fn dispatch_batch(&self, batch: &[Outgoing]) -> Result<(), EngineError> {
        let failed = |taken: usize, reason: String| EngineError::Queue { sent: batch.len(), taken, reason };
        let mut left: Vec<usize> = (0..batch.len()).collect();
        let mut reason = String::new();
        for _ in 0..WRITE_ROUNDS {
            let mut call = self.sqs().send_message_batch().queue_url(&self.config().dispatch_queue_url);
            for index in &left {
                call =
                    call.entries(self.entry(*index, &batch[*index]).map_err(|e| failed(0, e.to_string()))?);
            }
            let out = call.send().await.map_err(|e| {
                failed(batch.len() - left.len(), e.message().map_or_else(|| e.to_string(), str::to_owned))
            })?;
            left = out.failed().iter().filter_map(|f| f.id().parse().ok()).collect();
            match out.failed().first() {
                None => return Ok(()),
                Some(first) => reason = first.message().unwrap_or(first.code()).to_owned(),
            }
        }
        Err(failed(batch.len() - left.len(), reason))
    }

    fn entry(
        &self,
        index: usize,
        outgoing: &Outgoing,
    ) -> Result<SendMessageBatchRequestEntry, aws_sdk_sqs::error::BuildError> {
        SendMessageBatchRequestEntry::builder()
            .id(index.to_string())
            .message_body(outgoing.message.encode())
            .message_group_id(outgoing.client.as_str())
            .delay_seconds(outgoing.delay_seconds(self.now()))
            .build()
    }

    /// Whether a message came before its time, because no delay is long enough: it is sent again with the rest.
    pub(crate) fn is_early(&self, due_at: DateTime<Utc>) -> bool {
        (due_at - self.now()).num_seconds() > EARLY_SECONDS
    }

    /// Sends a message to the scan queue.
    pub(crate) async fn send_scan(&self, message: &Message) -> Result<(), EngineError> {
        let call = self.sqs().send_message().queue_url(&self.config().scan_queue_url);
        let sent = call.message_body(message.encode()).send().await;
        sent.map(drop).map_err(|e| EngineError::Queue {
            sent: 1,
            taken: 0,
            reason: e.message().map_or_else(|| e.to_string(), str::to_owned),
        })
    }

    /// Looks whether a consumer's queue is there.
    pub async fn check_queue(&self, queue_url: &str) -> QueueCheck {
        let Config { dispatch_queue_url, scan_queue_url, release_queue_url, .. } = self.config();
        let own = [dispatch_queue_url, scan_queue_url, release_queue_url];
        if own.into_iter().any(|own_url| is_same_or_beside(own_url, queue_url)) {
            return QueueCheck::Ours;
        }
        let look = self.sqs().get_queue_attributes().queue_url(queue_url);
        match look.attribute_names(QueueAttributeName::QueueArn).send().await {
            Ok(_) => QueueCheck::Exists { fifo: queue_url.ends_with(".fifo") },
            Err(e) if e.as_service_error().is_some_and(|e| e.is_queue_does_not_exist()) => {
                QueueCheck::Missing
            }
            Err(e) if e.code().is_some_and(|code| code.contains("NonExistentQueue")) => QueueCheck::Missing,
            Err(e) => QueueCheck::Unknown(e.message().map_or_else(|| e.to_string(), str::to_owned)),
        }
    }
}

/// Whether `queue_url` names the queue of `own_url`, or one whose name begins with it as its dead letters' does,
/// under whatever host name.
fn is_same_or_beside(own_url: &str, queue_url: &str) -> bool {
    let place = |url: &str| {
        url.split_once("://").and_then(|(_, rest)| rest.split_once('/')).map(|(_, p)| p.to_owned())
    };
    match (place(own_url), place(queue_url)) {
        (Some(own), Some(other)) => other.trim_matches('/').starts_with(own.trim_matches('/')),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn our_own_queues_are_known_under_any_host() {
        let own = "https://sqs.eu-west-1.amazonaws.com/123456789012/tidegate-dispatch";
        for (url, ours) in [
            (own, true),
            ("https://eu-west-1.queue.amazonaws.com/123456789012/tidegate-dispatch", true),
            ("https://sqs.eu-west-1.amazonaws.com//123456789012/tidegate-dispatch-dead-letters", true),
            ("https://sqs.eu-west-1.amazonaws.com/123456789012/jobs", false),
            ("https://sqs.eu-west-1.amazonaws.com/999999999999/tidegate-dispatch", false),
        ] {
            assert_eq!(is_same_or_beside(own, url), ours, "{url}");
        }
    }
}
