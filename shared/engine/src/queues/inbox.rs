//! What becomes of messages of our own queues that were received and not handled: they come again, later each time, or they
//! are poison and are set aside at once.
//!
//! A queue gives a message up after `maxReceiveCount` receives: with these waits the 1,000 of `template.yaml` outlast an outage
//! of a day and more.

use aws_sdk_sqs::types::{ChangeMessageVisibilityBatchRequestEntry, MessageAttributeValue};
use futures::future::BoxFuture;
use tidegate_domain::limits::SQS_BATCH;
use tracing::warn;

use super::Queues;
use crate::EngineError;

/// The attribute of a dead letter that says why it is one.
const REASON: &str = "reason";
/// The longest reason that is kept, in characters.
const REASON_CHARACTERS: usize = 1_000;

/// A message that is to be redelivered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Redelivery {
    /// Its receipt handle, of the last receive.
    pub receipt: String,
    /// How often it came, from 1.
    pub received: u32,
}

impl Redelivery {
    /// After how long it comes again, in seconds. What failed together does not come together again.
    fn in_seconds(&self) -> i32 {
        let longest = match self.received {
            0 | 1 => 1,
            2 => 5,
            3 => 20,
            4 => 60,
            _ => 180,
        };
        let spread =
            self.receipt.bytes().fold(0_i32, |sum, byte| sum.wrapping_mul(31).wrapping_add(byte.into()));
        longest - spread.rem_euclid(longest / 3 + 1)
    }
}

impl Queues {
    /// Hides messages that must come again for a while: seconds at first, three minutes from the fifth receive on. Those for
    /// which that fails stay hidden for as long as the queue hides every message.
    pub fn put_off<'a>(&'a self, queue_url: &'a str, messages: &'a [Redelivery]) -> BoxFuture<'a, ()> {
        Box::pin(async move {
            for some in messages.chunks(SQS_BATCH) {
                let entries = some.iter().enumerate().filter_map(|(id, message)| {
                    ChangeMessageVisibilityBatchRequestEntry::builder()
                        .id(id.to_string())
                        .receipt_handle(&message.receipt)
                        .visibility_timeout(message.in_seconds())
                        .build()
                        .ok()
                });
                let change = self.sqs.change_message_visibility_batch().queue_url(queue_url);
                if let Err(error) = change.set_entries(Some(entries.collect())).send().await {
                    warn!(%error, "messages that failed come again only after the queue's visibility timeout");
                }
            }
        })
    }

    /// Sets a message of the dispatch or scan queue aside that will never be handled, with the reason: it lies among the
    /// dead letters of the dispatch queue.
    pub(crate) async fn set_aside(&self, body: &str, reason: &str) -> Result<(), EngineError> {
        self.give_up(&self.config.dead_letter_queue_url, body, reason).await
    }

    /// The same for a message of the release queue.
    pub(crate) async fn set_release_aside(&self, body: &str, reason: &str) -> Result<(), EngineError> {
        self.give_up(&self.config.release_dead_letter_queue_url, body, reason).await
    }

    async fn give_up(&self, dead_letters: &str, body: &str, reason: &str) -> Result<(), EngineError> {
        let failed = |reason: String| EngineError::DeadLetter { reason };
        let shown: String = reason.chars().take(REASON_CHARACTERS).collect();
        let reason = MessageAttributeValue::builder().data_type("String").string_value(shown);
        let reason = reason.build().map_err(|e| failed(e.to_string()))?;
        let send = self.sqs.send_message().queue_url(dead_letters).message_body(body);
        match send.message_attributes(REASON, reason).send().await {
            Ok(_) => Ok(()),
            Err(error) => Err(failed(super::told(&error))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_come_again_later_each_time_and_not_all_at_once() {
        let in_seconds =
            |received, receipt: &str| Redelivery { receipt: receipt.to_owned(), received }.in_seconds();
        for (received, longest) in [(0, 1), (1, 1), (2, 5), (3, 20), (4, 60), (5, 180), (900, 180)] {
            let all: Vec<i32> = (0..200).map(|n| in_seconds(received, &format!("receipt {n}"))).collect();
            let (first, last) = (all.iter().min().unwrap(), all.iter().max().unwrap());
            assert!(*first >= longest * 2 / 3 && *last == longest, "{received}: {first} to {last}");
        }
    }
}
