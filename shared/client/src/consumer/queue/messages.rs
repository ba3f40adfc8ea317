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

/// A message of the queue, without its text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Message {
    pub(crate) message_id: String,
    pub(crate) receipt_handle: String,
}

/// A message that was received.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Received {
    pub(crate) message: Message,
    pub(crate) body: String,
    /// How often it was received, this time included.
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
    ) -> Boxed<'_, Result<Vec<Received>, String>>;

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
    ) -> Boxed<'_, Result<Vec<Received>, String>> {
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

fn read(message: aws_sdk_sqs::types::Message) -> Received {
    let receive_count = message
        .attributes
        .as_ref()
        .and_then(|attributes| attributes.get(&MessageSystemAttributeName::ApproximateReceiveCount))
        .and_then(|count| count.parse().ok());
    Received {
        message: Message {
            message_id: message.message_id.unwrap_or_default(),
            receipt_handle: message.receipt_handle.unwrap_or_default(),
        },
        body: message.body.unwrap_or_default(),
        receive_count: receive_count.unwrap_or(1),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use aws_sdk_sqs::config::retry::RetryConfig;
    use aws_sdk_sqs::config::{BehaviorVersion, Credentials, Region};
    use aws_smithy_runtime_api::client::http::{
        HttpClient, HttpConnector, HttpConnectorFuture, HttpConnectorSettings, SharedHttpConnector,
    };
    use aws_smithy_runtime_api::client::orchestrator::{HttpRequest, HttpResponse};
    use aws_smithy_runtime_api::client::runtime_components::RuntimeComponents;
    use aws_smithy_types::body::SdkBody;
    use serde_json::{Value, json};

    use super::*;

    /// What stands in for the network: notes each call with its request, and answers it.
    #[derive(Debug, Clone, Default)]
    struct Sqs {
        calls: Arc<Mutex<Vec<(String, Value)>>>,
        answers: Arc<Mutex<Vec<(u16, Value)>>>,
    }

    impl Sqs {
        /// A queue whose calls are answered so, one after another.
        fn answering(answers: impl IntoIterator<Item = (u16, Value)>) -> (Self, SqsQueue) {
            let mut answers: Vec<_> = answers.into_iter().collect();
            answers.reverse();
            let sqs = Self { answers: Arc::new(Mutex::new(answers)), ..Self::default() };
            let config = aws_sdk_sqs::Config::builder()
                .behavior_version(BehaviorVersion::latest())
                .region(Region::from_static("us-east-1"))
                .credentials_provider(Credentials::for_tests())
                .retry_config(RetryConfig::disabled())
                .http_client(sqs.clone())
                .build();
            let url = "http://127.0.0.1:1/000000000000/work".to_owned();
            (sqs, SqsQueue { sqs: aws_sdk_sqs::Client::from_conf(config), url })
        }

        fn calls(&self) -> Vec<(String, Value)> {
            self.calls.lock().unwrap().clone()
        }
    }

    impl HttpClient for Sqs {
        fn http_connector(&self, _: &HttpConnectorSettings, _: &RuntimeComponents) -> SharedHttpConnector {
            SharedHttpConnector::new(self.clone())
        }
    }

    impl HttpConnector for Sqs {
        fn call(&self, request: HttpRequest) -> HttpConnectorFuture {
            let operation = request.headers().get("x-amz-target").unwrap().to_owned();
            let body = serde_json::from_slice(request.body().bytes().unwrap()).unwrap();
            self.calls.lock().unwrap().push((operation, body));
            let (status, answer) = self.answers.lock().unwrap().pop().unwrap();
            HttpConnectorFuture::ready(Ok(HttpResponse::new(
                status.try_into().unwrap(),
                SdkBody::from(answer.to_string()),
            )))
        }
    }

    fn message(place: usize) -> Message {
        let (message_id, receipt_handle) = (format!("message-{place}"), format!("handle-{place}"));
        Message { message_id, receipt_handle }
    }

    #[tokio::test]
    async fn messages_are_received_with_how_often_they_came() {
        let received = json!({"Messages": [
            {"MessageId": "message-0", "ReceiptHandle": "handle-0", "Body": "hello", "Attributes": {"ApproximateReceiveCount": "7"}},
            {"MessageId": "message-1", "ReceiptHandle": "handle-1", "Body": "hello"},
        ]});
        let (sqs, queue) = Sqs::answering([(200, received), (200, json!({}))]);
        let messages = queue.receive(4, Duration::from_secs(10), Duration::from_secs(60)).await.unwrap();
        let received = |place, receive_count| Received {
            message: message(place),
            body: "hello".to_owned(),
            receive_count,
        };
        assert_eq!(messages, [received(0, 7), received(1, 1)]);
        assert_eq!(queue.receive(99, Duration::ZERO, Duration::from_secs(60)).await, Ok(Vec::new()));
        let request = |most: u8, wait: u8| {
            json!({"QueueUrl": queue.url, "MaxNumberOfMessages": most, "WaitTimeSeconds": wait, "VisibilityTimeout": 60,
                "MessageSystemAttributeNames": ["ApproximateReceiveCount"]})
        };
        let calls =
            [request(4, 10), request(10, 0)].map(|call| ("AmazonSQS.ReceiveMessage".to_owned(), call));
        assert_eq!(sqs.calls(), calls);
    }

    #[tokio::test]
    async fn a_receive_that_fails_says_why() {
        let denied =
            json!({"__type": "com.amazon.coral.service#AccessDeniedException", "message": "not allowed"});
        let (_, queue) = Sqs::answering([(403, denied)]);
        let error = queue.receive(1, Duration::ZERO, Duration::ZERO).await.unwrap_err();
        assert!(error.contains("not allowed"), "{error}");
    }

    #[tokio::test]
    async fn ten_messages_at_a_time_are_deleted_and_kept_whatever_becomes_of_others() {
        let failed = json!({"Successful": [], "Failed": [{"Id": "0", "Code": "x", "Message": "not now", "SenderFault": true}]});
        let fine = json!({"Successful": [], "Failed": []});
        let answers =
            [(403, json!({})), (200, failed), (200, fine.clone()), (200, fine.clone()), (200, fine)];
        let (sqs, queue) = Sqs::answering(answers);
        let messages: Vec<Message> = (0..21).map(message).collect();
        queue.delete(&messages).await;
        queue.set_visibility(&messages[..11], Duration::from_secs(40)).await;
        let calls = sqs.calls();
        let sizes: Vec<_> = calls.iter().map(|(_, call)| call["Entries"].as_array().unwrap().len()).collect();
        assert_eq!(sizes, [10, 10, 1, 10, 1]);
        assert_eq!(calls[2].1["Entries"], json!([{"Id": "0", "ReceiptHandle": "handle-20"}]));
        let kept = json!([{"Id": "0", "ReceiptHandle": "handle-10", "VisibilityTimeout": 40}]);
        assert_eq!((&*calls[4].0, &calls[4].1["Entries"]), ("AmazonSQS.ChangeMessageVisibilityBatch", &kept));
        assert!(calls[..3].iter().all(|(operation, _)| operation == "AmazonSQS.DeleteMessageBatch"));
    }
}
