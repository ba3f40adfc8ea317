//! Delivery to queues, as many events to a call as it may hold. Bodies are made when their call is sent: a chunk of large
//! events never lies in memory as a whole.

use std::collections::BTreeMap;
use std::iter;

use aws_sdk_sqs::error::ProvideErrorMetadata;
use futures::stream::{FuturesUnordered, StreamExt};
use tidegate_calls::{Attribute, BatchEntry, Call as _, RefusedEntry, send_batch};
use tidegate_domain::ids::{ClientId, EventId, RunId};

use super::event;
use super::{Delivery, EventToSend, Sent, fifo, is_throttling};
use crate::outgoing::sqs_text;
use crate::queues::batch::Batch;

/// Why a queue gets nothing.
const OWN_QUEUE: &str = "the queue is one of Tidegate's own";
/// Batch calls under way at once.
const CALLS_AT_ONCE: usize = 8;

struct Call<'a> {
    queue_url: &'a str,
    /// Which events they are.
    indexes: Vec<usize>,
    batch: Vec<BatchEntry<'static>>,
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
            under_way.extend(calls.by_ref().take(places).map(|call| self.send_call(call)));
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

    async fn send_call(&self, Call { queue_url, indexes, batch }: Call<'_>) -> Vec<(usize, Sent)> {
        let all = |sent: Sent| indexes.iter().map(|index| (*index, sent.clone())).collect();
        if self.queues.is_own_queue(queue_url) {
            return all(Sent::Refused { reason: OWN_QUEUE.to_owned() });
        }
        let sqs = self.regions.client_of(queue_url);
        match send_batch(&sqs, queue_url, &batch, self.regions.way()).await {
            Err(e) => {
                let reason = e.message().map_or_else(|| e.to_string(), str::to_owned);
                let overloaded = e.code().is_some_and(is_throttling);
                all(Sent::Failed { reason, retry_after: None, overloaded })
            }
            Ok(refused) => {
                let mut sent: Vec<(usize, Sent)> = all(Sent::Done);
                for RefusedEntry { index, code, reason, sender_fault } in refused {
                    if let Some((_, sent)) = sent.get_mut(index) {
                        *sent = match sender_fault {
                            true => Sent::Refused { reason },
                            false => {
                                Sent::Failed { reason, retry_after: None, overloaded: is_throttling(&code) }
                            }
                        };
                    }
                }
                sent
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
    let is_fifo = queue_url.ends_with(".fifo");
    let mut events = events.into_iter();
    let mut open = Some(Batch::default());
    let call = move |entries: Vec<_>| {
        let (indexes, batch) = entries.into_iter().unzip();
        Call { queue_url, indexes, batch }
    };
    iter::from_fn(move || {
        for (index, delivery) in events.by_ref() {
            let entry = entry(delivery, is_fifo);
            let bytes =
                entry.attributes.iter().map(Attribute::size).fold(entry.body.len(), usize::saturating_add);
            if let Some(entries) = open.as_mut().and_then(|batch| batch.add((index, entry), bytes)) {
                return Some(call(entries));
            }
        }
        open.take().and_then(Batch::rest).map(call)
    })
}

fn entry(delivery: &EventToSend, is_fifo: bool) -> BatchEntry<'static> {
    let EventToSend { client, event: id, hand_over, terms, .. } = delivery;
    let event = delivery.event();
    BatchEntry {
        body: sqs_text(event::text(&event)).into(),
        attributes: event::attributes(&event, delivery.traceparent()),
        delay_seconds: None,
        group_id: is_fifo.then(|| fifo::group_id_of(client, id.run().job(), &terms.terms)),
        deduplication_id: is_fifo.then(|| deduplication_id(client, id, *hand_over)),
    }
}
