//! The queues of our own, as `template.yaml` has them.

use aws_sdk_sqs::Client;
use aws_sdk_sqs::error::ProvideErrorMetadata;
use aws_sdk_sqs::types::QueueAttributeName;
use tidegate_embedded::OwnQueues;

/// What the names of tables and queues begin with.
pub(crate) const PREFIX: &str = "tidegate";
/// How long a received message is invisible, in seconds: no handling takes longer.
const VISIBILITY_SECONDS: u32 = 180;
/// Receives of a message before it is a dead letter: it outlasts an outage of a day. What will never be handled is set aside
/// at once.
const MAX_RECEIVES: u32 = 1_000;
/// How long messages are kept, in seconds: the most that SQS allows.
const RETENTION_SECONDS: u32 = 1_209_600;
/// How long a received message of the scan queue is invisible, in seconds.
const SCAN_VISIBILITY_SECONDS: u32 = 330;
/// How long messages of the scan queue are kept, in seconds.
const SCAN_RETENTION_SECONDS: u32 = 900;

/// A queue of our own is missing and cannot be created, or not set as it must be.
#[derive(Debug, thiserror::Error)]
#[error("failed to set up the queue '{queue}': {reason}")]
pub struct QueueError {
    queue: String,
    reason: String,
}

impl QueueError {
    pub(crate) fn new(queue: &str, error: &(impl ProvideErrorMetadata + std::fmt::Display)) -> Self {
        let reason = error.message().map_or_else(|| error.to_string(), str::to_owned);
        Self { queue: queue.to_owned(), reason }
    }
}

/// The names of all queues of our own.
pub(crate) fn own_names(prefix: &str) -> impl Iterator<Item = String> {
    ["dispatch", "dispatch-dead-letters", "scan", "release", "release-dead-letters"]
        .into_iter()
        .map(move |name| format!("{prefix}-{name}"))
}

/// The queues of our own as other processes may see them: to the release queue consumers send, the others are hidden.
pub(crate) fn hidden_from_others(prefix: &str) -> OwnQueues {
    let release = format!("{prefix}-release");
    let hidden = own_names(prefix).filter(|name| *name != release).collect();
    OwnQueues { hidden, send_only: Some(release) }
}

/// A queue, and where its messages end that will never be handled.
pub(crate) struct WithDeadLetters {
    pub(crate) url: String,
    pub(crate) dead_letters_url: String,
}

type Attributes = [(QueueAttributeName, String)];

/// Creates the dispatch queue and its dead-letter queue where they are missing.
pub(crate) async fn create_dispatch_queue(sqs: &Client, prefix: &str) -> Result<WithDeadLetters, QueueError> {
    create_with_dead_letters(sqs, &format!("{prefix}-dispatch")).await
}

async fn create_with_dead_letters(sqs: &Client, queue: &str) -> Result<WithDeadLetters, QueueError> {
    let retention = (QueueAttributeName::MessageRetentionPeriod, RETENTION_SECONDS.to_string());
    let dead_letters = format!("{queue}-dead-letters");
    let dead_letters_url = create(sqs, &dead_letters, std::slice::from_ref(&retention)).await?;
    let arn = arn(sqs, &dead_letters, &dead_letters_url).await?;
    let redrive = serde_json::json!({"deadLetterTargetArn": arn, "maxReceiveCount": MAX_RECEIVES});
    let attributes = [
        retention,
        (QueueAttributeName::VisibilityTimeout, VISIBILITY_SECONDS.to_string()),
        (QueueAttributeName::RedrivePolicy, redrive.to_string()),
    ];
    Ok(WithDeadLetters { url: create(sqs, queue, &attributes).await?, dead_letters_url })
}

/// Creates the release queue and its dead-letter queue where they are missing.
pub(crate) async fn create_release_queue(sqs: &Client, prefix: &str) -> Result<WithDeadLetters, QueueError> {
    create_with_dead_letters(sqs, &format!("{prefix}-release")).await
}

/// Creates the scan queue where it is missing; returns its URL. It has no dead letters: each tick sends its messages anew.
pub(crate) async fn create_scan_queue(sqs: &Client, prefix: &str) -> Result<String, QueueError> {
    let attributes = [
        (QueueAttributeName::MessageRetentionPeriod, SCAN_RETENTION_SECONDS.to_string()),
        (QueueAttributeName::VisibilityTimeout, SCAN_VISIBILITY_SECONDS.to_string()),
    ];
    create(sqs, &format!("{prefix}-scan"), &attributes).await
}

/// Creates a queue when it is missing, and sets its attributes in any case: an older version may have set others.
async fn create(sqs: &Client, queue: &str, attributes: &Attributes) -> Result<String, QueueError> {
    let created = sqs.create_queue().queue_name(queue).send().await;
    let url = created.map_err(|e| QueueError::new(queue, &e))?.queue_url.unwrap_or_default();
    let attributes = attributes.iter().cloned().collect();
    let set = sqs.set_queue_attributes().queue_url(&url).set_attributes(Some(attributes)).send().await;
    set.map_err(|e| QueueError::new(queue, &e))?;
    Ok(url)
}

async fn arn(sqs: &Client, queue: &str, url: &str) -> Result<String, QueueError> {
    let wanted = QueueAttributeName::QueueArn;
    let read = sqs.get_queue_attributes().queue_url(url).attribute_names(wanted.clone()).send().await;
    let attributes = read.map_err(|e| QueueError::new(queue, &e))?.attributes.unwrap_or_default();
    Ok(attributes.get(&wanted).cloned().unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    #[test]
    fn the_queues_are_those_of_the_template() {
        let template = tidegate_testkit::template().unwrap();
        let resources = template["Resources"].as_object().unwrap();
        let queues: Vec<(String, &Value)> = resources
            .values()
            .filter(|resource| resource["Type"] == "AWS::SQS::Queue")
            .map(|queue| &queue["Properties"])
            .map(|queue| {
                (queue["QueueName"]["Sub"].as_str().unwrap().replace("${AWS::StackName}", "t"), queue)
            })
            .collect();
        let mut names: Vec<String> = own_names("t").collect();
        names.sort_unstable();
        let mut of_template: Vec<String> = queues.iter().map(|(name, _)| name.clone()).collect();
        of_template.sort_unstable();
        assert_eq!(of_template, names);
        for (name, queue) in queues {
            let (retention, visibility, receives) = match name.as_str() {
                "t-scan" => (SCAN_RETENTION_SECONDS, Some(SCAN_VISIBILITY_SECONDS), None),
                name if name.ends_with("-dead-letters") => (RETENTION_SECONDS, None, None),
                _ => (RETENTION_SECONDS, Some(VISIBILITY_SECONDS), Some(MAX_RECEIVES)),
            };
            let number = |value: &Value| value.as_u64().map(|number| u32::try_from(number).unwrap());
            assert_eq!(number(&queue["MessageRetentionPeriod"]), Some(retention), "{name}");
            assert_eq!(number(&queue["VisibilityTimeout"]), visibility, "{name}");
            assert_eq!(number(&queue["RedrivePolicy"]["maxReceiveCount"]), receives, "{name}");
        }
    }
}
