//! The event that Lambda makes of SQS messages, and the answer that names those to be delivered again.

use serde::{Deserialize, Serialize};
use tidegate_engine::{Engine, Handled, Redelivery};

use crate::figures::count_retried;

/// Messages of one queue, as Lambda hands them over: the event of an SQS event source.
///
/// ```
/// use tidegate_aws::Records;
///
/// let event = r#"{"Records": [{"messageId": "a", "body": "...", "attributes": {"ApproximateReceiveCount": "1"}}]}"#;
/// let records: Records = serde_json::from_str(event)?;
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Debug, Deserialize)]
pub struct Records {
    #[serde(rename = "Records", default)]
    records: Vec<Record>,
}

/// What the name of the release queue ends in, as `template.yaml` has it.
const RELEASE_QUEUE: &str = "-release";
/// The same of the scan queue, whose messages each tick sends anew.
const SCAN_QUEUE: &str = "-scan";

/// One message. A body that is no Tidegate message is the engine's to refuse.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Record {
    message_id: String,
    #[serde(default)]
    receipt_handle: String,
    #[serde(default)]
    body: String,
    #[serde(default)]
    attributes: Attributes,
    #[serde(rename = "eventSourceARN", default)]
    queue_arn: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
struct Attributes {
    approximate_receive_count: String,
}

impl Records {
    /// Hands the messages to the engine, hides those that must come again for a while, and names them. A queue whose name
    /// ends in `-release` is the release queue.
    pub async fn handle(&self, engine: &Engine) -> Failures {
        let messages: Vec<_> = self.records.iter().map(|r| (&*r.body, r.received())).collect();
        // An invocation has the messages of one queue.
        let queue_arn = self.records.first().map_or("", |first| &*first.queue_arn);
        let config = engine.queues().config();
        let (handled, queue_url) = if queue_arn.ends_with(RELEASE_QUEUE) {
            (engine.handle_releases(&messages).await, Some(&config.release_queue_url))
        } else {
            let queue_url = (!queue_arn.ends_with(SCAN_QUEUE)).then_some(&config.dispatch_queue_url);
            (engine.handle_all(&messages).await, queue_url)
        };
        if let Some(queue_url) = queue_url {
            let failed = self.records.iter().zip(&handled).filter(|(_, handled)| **handled == Handled::Retry);
            let again = failed.map(|(record, _)| record.redelivery()).collect::<Vec<_>>();
            engine.queues().put_off(queue_url, &again).await;
        }
        count_retried(handled.iter().filter(|handled| **handled == Handled::Retry).count());
        Failures::of(self.records.iter().map(|record| &*record.message_id).zip(handled))
    }
}

impl Record {
    fn redelivery(&self) -> Redelivery {
        Redelivery { receipt: self.receipt_handle.clone(), received: self.received() }
    }

    /// How often the message came. An unknown number counts as a repeat: a look too many is better than a duplicate.
    fn received(&self) -> u32 {
        self.attributes.approximate_receive_count.parse().unwrap_or(2)
    }
}

/// The messages that must come again, as Lambda reads them from an answer (`ReportBatchItemFailures`): it deletes the
/// others.
///
/// ```
/// let answer = serde_json::to_string(&tidegate_aws::Failures::none())?;
/// assert_eq!(answer, r#"{"batchItemFailures":[]}"#);
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Failures {
    batch_item_failures: Vec<Failure>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Failure {
    item_identifier: String,
}

impl Failures {
    /// No message must come again: Lambda deletes them all.
    pub fn none() -> Self {
        Self { batch_item_failures: Vec::new() }
    }

    fn of<'a>(handled: impl IntoIterator<Item = (&'a str, Handled)>) -> Self {
        let again = handled.into_iter().filter(|(_, handled)| *handled == Handled::Retry);
        let failures = again.map(|(id, _)| Failure { item_identifier: id.to_owned() }).collect();
        Self { batch_item_failures: failures }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lambda_s_event_is_read_and_only_what_must_come_again_is_named() {
        let event = r#"{"Records":[
            {"messageId":"a","body":"x","attributes":{"ApproximateReceiveCount":"3","SentTimestamp":"1"},"eventSource":"aws:sqs"},
            {"messageId":"b","receiptHandle":"r"}]}"#;
        let records: Records = serde_json::from_str(event).unwrap();
        let read: Vec<_> = records.records.iter().map(|r| (&*r.message_id, &*r.body, r.received())).collect();
        assert_eq!(read, [("a", "x", 3), ("b", "", 2)]);
        let failures = Failures::of([("a", Handled::Retry), ("b", Handled::Done)]);
        let answer = serde_json::to_string(&failures).unwrap();
        assert_eq!(answer, r#"{"batchItemFailures":[{"itemIdentifier":"a"}]}"#);
    }
}
