//! From the JSON body of a request to the work on a queue, and to the JSON body of the response.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::error::{Code, Failure, Refused};
use super::name::{self, QueueName};
use super::store::{Desk, Keep};
use super::wire::{self, BatchOutcome};
use super::{Sqs, acknowledge, admin, message, send};

/// A request that succeeded: the response, and what the meter counts.
pub(super) struct Served {
    pub(super) queue: String,
    pub(super) body: Vec<u8>,
    pub(super) payload_bytes: usize,
    pub(super) messages: usize,
}

impl Served {
    pub(super) fn new(url: &str, response: &impl Serialize, payload_bytes: usize, messages: usize) -> Self {
        let queue = name::in_url(url).unwrap_or_default().to_owned();
        Self { queue, body: serde_json::to_vec(response).unwrap_or_default(), payload_bytes, messages }
    }

    pub(super) fn plain(url: &str, response: &Value) -> Self {
        Self::new(url, response, 0, 0)
    }

    fn batch<T: Serialize>(url: &str, outcome: &BatchOutcome<T>, payload_bytes: usize) -> Self {
        Self::new(url, outcome, payload_bytes, outcome.successful.len())
    }
}

pub(super) fn parse<'b, Q: Deserialize<'b>>(body: &'b [u8]) -> Result<Q, Refused> {
    let body = if body.is_empty() { b"{}" } else { body };
    serde_json::from_slice(body).map_err(|error| Refused::new(Code::MalformedInput, error.to_string()))
}

/// The queue that a request names, for the meter; empty when it cannot be told.
pub(super) fn queue_named(body: &[u8]) -> String {
    let request: wire::OneQueue = parse(body).unwrap_or_default();
    name::in_url(&request.queue_url).unwrap_or_default().to_owned()
}

impl Sqs {
    /// Serves a send.
    pub(super) async fn send(&self, operation: &str, body: &[u8]) -> Result<Served, Failure> {
        match operation {
            "SendMessage" => {
                let request: wire::SendMessage<'_> = parse(body)?;
                let url = request.queue_url.clone();
                let entry = wire::SendEntry::from(request);
                let sent = self.take_in(&url, |desk| send::one(desk, &entry)).await?;
                Ok(Served::new(&url, &sent.told(), message::size(&entry), 1))
            }
            _ => {
                let wire::SendMessageBatch { queue_url, entries } = parse(body)?;
                let sent = self.take_in(&queue_url, |desk| send::many(desk, &entries)).await?;
                let payload_bytes = entries.iter().map(message::size).sum();
                Ok(Served::batch(&queue_url, &sent.map(|stored| stored.told()), payload_bytes))
            }
        }
    }

    /// Puts into a queue what is sent to it. Others run once before it is answered: the receiver that it woke stands next in this
    /// very thread, where no other can take it over, and would wait until the sender does, through all that the sender still asks
    /// of services that never pause. Where others send as well, it leaves its commit to whoever is answered first.
    pub(super) async fn take_in<R>(
        &self,
        url: &str,
        work: impl FnOnce(&mut Desk<'_>) -> Result<R, Failure>,
    ) -> Result<R, Failure> {
        let under_way = Arc::clone(&self.sending);
        let is_alone = Arc::strong_count(&under_way) == 2;
        let keep = if is_alone { Keep::Now } else { Keep::Together };
        let taken = self.on_queue_with_fate(url, keep, work);
        pause().await;
        let (done, fate) = taken?;
        self.see_kept(fate)?;
        Ok(done)
    }

    /// Serves a request that does not wait.
    pub(super) fn answer(&self, operation: &str, body: &[u8]) -> Result<Served, Failure> {
        match operation {
            "DeleteMessage" => {
                let request: wire::DeleteMessage = parse(body)?;
                let receipt = &request.receipt_handle;
                self.on_queue_kept(&request.queue_url, Keep::Soon, |desk| {
                    acknowledge::delete(desk, receipt)
                })?;
                Ok(Served::new(&request.queue_url, &json!({}), 0, 1))
            }
            "DeleteMessageBatch" => {
                let request: wire::DeleteMessageBatch = parse(body)?;
                let outcome = self.on_queue_kept(&request.queue_url, Keep::Soon, |desk| {
                    acknowledge::delete_many(desk, &request.entries)
                })?;
                Ok(Served::batch(&request.queue_url, &outcome, 0))
            }
            "ChangeMessageVisibility" => {
                let request: wire::ChangeMessageVisibility = parse(body)?;
                let seconds = request.visibility_timeout;
                self.on_queue(&request.queue_url, |desk| {
                    acknowledge::change(desk, &request.receipt_handle, seconds)
                })?;
                Ok(Served::new(&request.queue_url, &json!({}), 0, 1))
            }
            "ChangeMessageVisibilityBatch" => {
                let request: wire::ChangeMessageVisibilityBatch = parse(body)?;
                let outcome = self
                    .on_queue(&request.queue_url, |desk| acknowledge::change_many(desk, &request.entries))?;
                Ok(Served::batch(&request.queue_url, &outcome, 0))
            }
            _ => self.answer_about_queues(operation, body),
        }
    }

    fn answer_about_queues(&self, operation: &str, body: &[u8]) -> Result<Served, Failure> {
        let now_ms = self.now_ms();
        match operation {
            "CreateQueue" => {
                let name = admin::create(&mut self.lock(), parse(body)?, now_ms)?;
                Ok(Served::plain(name.as_str(), &json!({ "QueueUrl": self.url(&name) })))
            }
            "GetQueueUrl" => {
                let request: wire::GetQueueUrl = parse(body)?;
                let name = admin::named(&self.lock(), &request.queue_name)?;
                Ok(Served::plain(name.as_str(), &json!({ "QueueUrl": self.url(&name) })))
            }
            "ListQueues" => {
                let (names, next) = admin::list(&self.lock(), &parse(body)?, |_| true)?;
                Ok(Served::plain("", &self.listing("QueueUrls", &names, next)))
            }
            "ListDeadLetterSourceQueues" => {
                let url = parse::<wire::OneQueue>(body)?.queue_url;
                let names = admin::dead_letter_sources(&self.lock(), &url)?;
                Ok(Served::plain(&url, &self.listing("queueUrls", &names, None)))
            }
            "DeleteQueue" => {
                let url = parse::<wire::OneQueue>(body)?.queue_url;
                admin::delete(&mut self.lock(), &url)?;
                Ok(Served::plain(&url, &json!({})))
            }
            "PurgeQueue" => {
                let url = parse::<wire::OneQueue>(body)?.queue_url;
                self.on_queue(&url, admin::purge)?;
                Ok(Served::plain(&url, &json!({})))
            }
            "GetQueueAttributes" => {
                let request: wire::GetQueueAttributes = parse(body)?;
                let names = &request.attribute_names;
                let attributes = self.on_queue(&request.queue_url, |desk| admin::attributes(desk, names))?;
                Ok(Served::plain(&request.queue_url, &attributes))
            }
            "SetQueueAttributes" => {
                let request: wire::SetQueueAttributes = parse(body)?;
                admin::set_attributes(&mut self.lock(), &request.queue_url, &request.attributes, now_ms)?;
                Ok(Served::plain(&request.queue_url, &json!({})))
            }
            _ => self.answer_about_tags(operation, body),
        }
    }

    fn answer_about_tags(&self, operation: &str, body: &[u8]) -> Result<Served, Failure> {
        match operation {
            "TagQueue" => {
                let request: wire::TagQueue = parse(body)?;
                admin::change_tags(&mut self.lock(), &request.queue_url, |tags| tags.extend(request.tags))?;
                Ok(Served::plain(&request.queue_url, &json!({})))
            }
            "UntagQueue" => {
                let request: wire::UntagQueue = parse(body)?;
                let keys = request.tag_keys;
                admin::change_tags(&mut self.lock(), &request.queue_url, |tags| {
                    tags.retain(|key, _| !keys.contains(key))
                })?;
                Ok(Served::plain(&request.queue_url, &json!({})))
            }
            "ListQueueTags" => {
                let url = parse::<wire::OneQueue>(body)?.queue_url;
                let tags = admin::find(&self.lock(), &url)?.tags.clone();
                Ok(Served::plain(&url, &json!({ "Tags": tags })))
            }
            "AddPermission"
            | "RemovePermission"
            | "StartMessageMoveTask"
            | "CancelMessageMoveTask"
            | "ListMessageMoveTasks" => {
                let message = format!("{operation} is not served by the embedded SQS.");
                Err(Refused::new(Code::UnsupportedOperation, message).into())
            }
            _ => {
                let message = format!("The action {operation} is not valid for this endpoint.");
                Err(Refused::new(Code::UnknownOperation, message).into())
            }
        }
    }

    fn url(&self, name: &QueueName) -> String {
        name.url(&self.origin())
    }

    pub(super) fn listing(&self, member: &str, names: &[QueueName], next: Option<String>) -> Value {
        let origin = self.origin();
        let urls: Vec<String> = names.iter().map(|name| name.url(&origin)).collect();
        let mut listing = json!({ member: urls });
        if let Some(next) = next {
            listing["NextToken"] = next.into();
        }
        listing
    }
}

/// Lets others run once. It wakes itself, so it goes on under any executor, and by hand.
async fn pause() {
    let mut paused = false;
    std::future::poll_fn(|context| match std::mem::replace(&mut paused, true) {
        true => std::task::Poll::Ready(()),
        false => {
            context.waker().wake_by_ref();
            std::task::Poll::Pending
        }
    })
    .await;
}
