//! What a consumer receives.

use std::sync::Arc;

use chrono::{DateTime, SecondsFormat, Utc};
use serde_json::value::RawValue;
use sha2::{Digest as _, Sha256};
use tidegate_calls::Attribute;
use tidegate_domain::ids::{ClientId, EventId};
use tidegate_domain::token::SignedToken;
use tidegate_protocol::Event;

use crate::contents::Terms;

/// An event on its way.
#[derive(Debug, Clone)]
pub(crate) struct EventToSend {
    pub(crate) client: ClientId,
    pub(crate) event: EventId,
    /// Which delivery of the event this is, from 1.
    pub(crate) attempt: u8,
    /// The same without those that failed: to a FIFO queue a delivery that failed and its repeats are one message.
    pub(crate) hand_over: u8,
    /// The token that it holds, as its consumer gets it, and when the lease ends.
    pub(crate) lease: Option<(SignedToken, DateTime<Utc>)>,
    pub(crate) terms: Arc<Terms>,
}

pub(crate) fn rfc3339(instant: DateTime<Utc>) -> String {
    instant.to_rfc3339_opts(SecondsFormat::AutoSi, true)
}

impl EventToSend {
    /// Whether nothing follows it if its lease runs out, unless it turns out not to have been sent.
    pub(crate) fn is_last(&self) -> bool {
        self.terms.terms.is_last_hand_over(self.attempt, self.attempt.saturating_sub(self.hand_over))
    }

    /// What the consumer gets.
    pub(crate) fn event(&self) -> Event<Box<RawValue>> {
        let run = self.event.run();
        let count = self.terms.terms.count.get();
        Event {
            event_id: self.event.to_string(),
            job_id: run.job().to_string(),
            client_id: self.client.to_string(),
            run_id: run.to_string(),
            index: self.event.index(),
            count,
            launch_at: rfc3339(run.launch_at()),
            attempt: self.attempt.into(),
            token: self.lease.as_ref().map(|(token, _)| token.to_string()),
            lease_expires_at: self.lease.as_ref().map(|(_, end)| rfc3339(*end)),
            payload: self.terms.payloads.for_event(&self.event, count),
        }
    }

    /// What tells this delivery from all others: so many bytes of a hash, in hex.
    pub(super) fn digest(&self, bytes: usize) -> String {
        digest(&format!("{} {} {}", self.client, self.event, self.attempt), bytes)
    }

    /// The trace that the delivery is part of, as the header `traceparent` of W3C has it: the events of a run have a trace id in
    /// common, and each delivery is a span of its own. It follows from their ids, so that nothing needs to be remembered.
    pub(crate) fn traceparent(&self) -> String {
        let trace = digest(&format!("{} {}", self.client, self.event.run()), 16);
        let span = self.digest(8);
        format!("00-{trace}-{span}-01")
    }
}

/// The first bytes of the SHA-256 of a text, in hex.
pub(super) fn digest(text: &str, bytes: usize) -> String {
    let digit = |half: u8| char::from_digit(half.into(), 16).unwrap_or_default();
    Sha256::digest(text).iter().take(bytes).flat_map(|byte| [digit(byte >> 4), digit(byte & 15)]).collect()
}

/// The JSON text of an event.
pub(crate) fn text(event: &Event<Box<RawValue>>) -> String {
    serde_json::to_string(event).unwrap_or_default()
}

/// The attributes of an event's message: what a consumer may route or trace by without reading its text. At most ten, as SQS
/// allows.
pub(crate) fn attributes(event: &Event<Box<RawValue>>, traceparent: String) -> Vec<Attribute> {
    let text = |name, value: &str| Attribute { name, kind: "String", value: value.to_owned() };
    let number = |name, value: u32| Attribute { name, kind: "Number", value: value.to_string() };
    let mut all = vec![
        text("event_id", &event.event_id),
        text("job_id", &event.job_id),
        text("run_id", &event.run_id),
        number("index", event.index),
        number("count", event.count),
        text("launch_at", &event.launch_at),
        number("attempt", event.attempt),
        Attribute { name: "traceparent", kind: "String", value: traceparent },
    ];
    all.extend(event.token.as_deref().map(|token| text("token", token)));
    all.extend(event.lease_expires_at.as_deref().map(|at| text("lease_expires_at", at)));
    all
}
