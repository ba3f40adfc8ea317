//! Delivery to queues, as many events to a call as it may hold. Bodies are made when their call is sent: a chunk of large
//! events never lies in memory as a whole.

use std::collections::BTreeMap;
use std::iter;

use aws_sdk_sqs::error::ProvideErrorMetadata;
use aws_sdk_sqs::types::{MessageAttributeValue, SendMessageBatchRequestEntry};
use futures::stream::{FuturesUnordered, StreamExt};
use tidegate_calls::Call as _;
use tidegate_domain::ids::{ClientId, EventId, RunId};

use super::event::{self, Attribute};
use super::{Delivery, EventToSend, Sent, fifo, is_throttling};
use crate::outgoing::sqs_text;
use crate::queues::batch::Batch;

/// Why a queue gets nothing.
const OWN_QUEUE: &str = "the queue is one of Tidegate's own";
/// Batch calls under way at once.
const CALLS_AT_ONCE: usize = 8;

struct Call<'a> {
    queue_url: &'a str,
    entries: Vec<(usize, Entry)>,
}

/// What a queue gets of an event.
struct Entry {
    body: String,
    attributes: Vec<Attribute>,
}

impl Delivery {
    /// Sends the chosen events to their queues. Answers come as they arrive.
    pub(super) async fn send_to_queues(
        &self,
        deliveries: &[EventToSend],
        chosen: &[usize],
    ) -> Vec<(usize, Sent)> {
        let mut calls = calls(deliveries, chosen);
        let mut under_way = FuturesUnordered::new();
        let mut answers = Vec::with_capacity(chosen.len());
        loop {
            let places = CALLS_AT_ONCE.saturating_sub(under_way.len());
            under_way.extend(calls.by_ref().take(places).map(|call| self.send_call(deliveries, call)));
            match under_way.next().await {
                Some(answered) => answers.extend(answered),
                None => return answers,
            }
        }
    }

    /// Sends a completion to its queue.
    pub(super) async fn queue_completion(
        &self,
        (client, run): (&ClientId, &RunId),
        queue_url: &str,
        (id, body): (&str, String),
    ) -> Sent {
        if self.queues.is_own_queue(queue_url) {
            return Sent::Refused { reason: OWN_QUEUE.to_owned() };
        }
        let sqs = self.regions.client_of(queue_url);
        let mut call = sqs.send_message().queue_url(queue_url).message_body(sqs_text(body));
        if queue_url.ends_with(".fifo") {
            call = call
                .message_group_id(fifo::group_id(client, run.job()))
                .message_deduplication_id(fifo::deduplication_id(client, id));
        }
        match call.send_by(self.regions.way()).await {
            Ok(_) => Sent::Done,
            Err(e) => {
                let reason = e.message().map_or_else(|| e.to_string(), str::to_owned);
                Sent::failed(reason)
            }
        }
    }

    async fn send_call(&self, deliveries: &[EventToSend], call: Call<'_>) -> Vec<(usize, Sent)> {
        let fail = |reason: String| {
            let failed = Sent::failed(reason);
            call.entries.iter().map(|(index, _)| (*index, failed.clone())).collect::<Vec<_>>()
        };
        if self.queues.is_own_queue(call.queue_url) {
            let refused = Sent::Refused { reason: OWN_QUEUE.to_owned() };
            return call.entries.iter().map(|(index, _)| (*index, refused.clone())).collect();
        }
        let is_fifo = call.queue_url.ends_with(".fifo");
        let sqs = self.regions.client_of(call.queue_url);
        let mut request = sqs.send_message_batch().queue_url(call.queue_url);
        for (index, Entry { body, attributes }) in &call.entries {
            let mut entry = SendMessageBatchRequestEntry::builder().id(index.to_string()).message_body(body);
            for Attribute { name, kind, value } in attributes {
                let value = MessageAttributeValue::builder().data_type(*kind).string_value(value);
                entry = match value.build() {
                    Ok(value) => entry.message_attributes(*name, value),
                    Err(e) => return fail(e.to_string()),
                };
            }
            let entry = match deliveries.get(*index) {
                Some(EventToSend { client, event, hand_over, terms, .. }) if is_fifo => entry
                    .message_group_id(fifo::group_id_of(client, event.run().job(), &terms.terms))
                    .message_deduplication_id(deduplication_id(client, event, *hand_over)),
                _ => entry,
            };
            request = match entry.build() {
                Ok(entry) => request.entries(entry),
                Err(e) => return fail(e.to_string()),
            };
        }
        match request.send_by(self.regions.way()).await {
            Err(e) => {
                let reason = e.message().map_or_else(|| e.to_string(), str::to_owned);
                let failed = Sent::Failed {
                    reason,
                    retry_after: None,
                    overloaded: e.code().is_some_and(is_throttling),
                };
                call.entries.iter().map(|(index, _)| (*index, failed.clone())).collect()
            }
            Ok(out) => {
                let mut sent: BTreeMap<usize, Sent> =
                    call.entries.iter().map(|(index, _)| (*index, Sent::Done)).collect();
                for failed in out.failed() {
                    let reason = failed.message().unwrap_or(failed.code()).to_owned();
                    if let Ok(index) = failed.id().parse() {
                        let outcome = match failed.sender_fault() {
                            true => Sent::Refused { reason },
                            false => {
                                let overloaded = is_throttling(failed.code());
                                Sent::Failed { reason, retry_after: None, overloaded }
                            }
                        };
                        sent.insert(index, outcome);
                    }
                }
                sent.into_iter().collect()
            }
        }
    }
}

/// A delivery that failed may have arrived all the same, so its repeats are the same message to a FIFO queue; a new lease
/// of the event makes a new one.
pub(super) fn deduplication_id(client: &ClientId, event: &EventId, hand_over: u8) -> String {
    match hand_over {
        1 => fifo::deduplication_id(client, &event.to_string()),
        later => fifo::deduplication_id(client, &format!("{event}-{later}")),
    }
}

/// The calls that take the chosen events to their queues, each made when it is asked for.
fn calls<'a>(deliveries: &'a [EventToSend], chosen: &[usize]) -> impl Iterator<Item = Call<'a>> + use<'a> {
    let mut by_queue: BTreeMap<&str, Vec<(usize, &EventToSend)>> = BTreeMap::new();
    for (index, delivery) in chosen.iter().filter_map(|index| Some((*index, deliveries.get(*index)?))) {
        by_queue.entry(delivery.terms.terms.target.address()).or_default().push((index, delivery));
    }
    by_queue.into_iter().flat_map(|(queue_url, events)| calls_of(queue_url, events))
}

fn calls_of<'a>(queue_url: &'a str, events: Vec<(usize, &'a EventToSend)>) -> impl Iterator<Item = Call<'a>> {
    let mut events = events.into_iter();
    let mut open = Some(Batch::default());
    iter::from_fn(move || {
        for (index, delivery) in events.by_ref() {
            let event = delivery.event();
            let attributes = event::attributes(&event, delivery.traceparent());
            let body = sqs_text(event::text(&event));
            let bytes = attributes.iter().map(Attribute::size).fold(body.len(), usize::saturating_add);
            let entry = Entry { body, attributes };
            if let Some(entries) = open.as_mut().and_then(|batch| batch.add((index, entry), bytes)) {
                return Some(Call { queue_url, entries });
            }
        }
        open.take().and_then(Batch::rest).map(|entries| Call { queue_url, entries })
    })
}
