//! Delivery to queues, ten events to a call.

use std::collections::BTreeMap;

use aws_sdk_sqs::error::ProvideErrorMetadata;
use aws_sdk_sqs::types::SendMessageBatchRequestEntry;
use futures::stream::{self, StreamExt};
use tidegate_domain::limits::SQS_BATCH;

use super::{Delivery, Sent};
use crate::Engine;

/// Batch calls under way at once.
const CALLS_AT_ONCE: usize = 8;
/// Text of one call, in bytes. SQS takes 1 MiB; a margin is left for what it counts beside the bodies.
const CALL_BYTES: usize = 1_000_000;

struct Call<'a> {
    queue_url: &'a str,
    entries: Vec<(usize, String)>,
}

impl Engine {
    /// Sends the chosen events to their queues. Answers come as they arrive.
    pub(super) async fn send_to_queues(
        &self,
        deliveries: &[Delivery],
        chosen: &[usize],
    ) -> Vec<(usize, Sent)> {
        let calls = calls(deliveries, chosen);
        let sends: Vec<_> = calls.iter().map(|call| self.send_call(deliveries, call)).collect();
        let answers: Vec<_> = stream::iter(sends).buffer_unordered(CALLS_AT_ONCE).collect().await;
        answers.into_iter().flatten().collect()
    }

    async fn send_call(&self, deliveries: &[Delivery], call: &Call<'_>) -> Vec<(usize, Sent)> {
        let fail = |reason: String| {
            let failed = Sent::Failed { reason, retry_after: None };
            call.entries.iter().map(|(index, _)| (*index, failed.clone())).collect::<Vec<_>>()
        };
        let fifo = call.queue_url.ends_with(".fifo");
        let mut request = self.sqs().send_message_batch().queue_url(call.queue_url);
        for (index, body) in &call.entries {
            let event = &deliveries[*index].event;
            let entry = SendMessageBatchRequestEntry::builder().id(index.to_string()).message_body(body);
            let entry = match fifo {
                true => entry
                    .message_group_id(event.run().job().as_str())
                    .message_deduplication_id(deduplication_id(&deliveries[*index])),
                false => entry,
            };
            request = match entry.build() {
                Ok(entry) => request.entries(entry),
                Err(e) => return fail(e.to_string()),
            };
        }
        match request.send().await {
            Err(e) => fail(e.message().map_or_else(|| e.to_string(), str::to_owned)),
            Ok(out) => {
                let mut sent: BTreeMap<usize, Sent> =
                    call.entries.iter().map(|(index, _)| (*index, Sent::Done)).collect();
                for failed in out.failed() {
                    let reason = failed.message().unwrap_or(failed.code()).to_owned();
                    if let Ok(index) = failed.id().parse() {
                        let outcome = match failed.sender_fault() {
                            true => Sent::Refused { reason },
                            false => Sent::Failed { reason, retry_after: None },
                        };
                        sent.insert(index, outcome);
                    }
                }
                sent.into_iter().collect()
            }
        }
    }
}

/// A repeat of one delivery is the same message to a FIFO queue; a new lease of the event is a new one.
fn deduplication_id(delivery: &Delivery) -> String {
    match delivery.attempt {
        1 => delivery.event.to_string(),
        attempt => format!("{}-{attempt}", delivery.event),
    }
}

fn calls<'a>(deliveries: &'a [Delivery], chosen: &[usize]) -> Vec<Call<'a>> {
    let mut by_queue: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
    for index in chosen {
        by_queue.entry(deliveries[*index].terms.terms.target.url()).or_default().push(*index);
    }
    let mut calls = Vec::new();
    for (queue_url, indexes) in by_queue {
        let mut call = Call { queue_url, entries: Vec::new() };
        let mut bytes = 0;
        for index in indexes {
            let body = deliveries[index].body();
            if call.entries.len() == SQS_BATCH
                || (bytes + body.len() > CALL_BYTES && !call.entries.is_empty())
            {
                calls.push(std::mem::replace(&mut call, Call { queue_url, entries: Vec::new() }));
                bytes = 0;
            }
            bytes += body.len();
            call.entries.push((index, body));
        }
        calls.push(call);
    }
    calls
}
