//! What a consumer receives.

use std::sync::Arc;

use chrono::{DateTime, SecondsFormat, Utc};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use tidegate_domain::ids::{ClientId, EventId};
use tidegate_domain::token::SignedToken;

use crate::contents::Terms;

/// The body of a delivered event: an SQS message's text, or the body of a POST. Version 1; fields are only ever added.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct EventBody {
    /// The idempotency key: the same for every delivery of the event.
    pub event_id: String,
    /// The client's job.
    pub job_id: String,
    /// The client.
    pub client_id: String,
    /// The run that it belongs to.
    pub run_id: String,
    /// Its number in the run, from 0.
    pub index: u32,
    /// How many events the run has.
    pub count: u32,
    /// When the run was due, RFC 3339.
    pub launch_at: String,
    /// Which delivery of the event this is, from 1. Deliveries that failed count.
    pub attempt: u8,
    /// To be released when the work is done; absent where nothing throttles.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub token: Option<String>,
    /// When the token is taken back unless it is extended, RFC 3339.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub lease_expires_at: Option<String>,
    /// What the job carries.
    pub payload: Box<RawValue>,
}

/// An event on its way.
#[derive(Debug, Clone)]
pub(crate) struct EventToSend {
    pub(crate) client: ClientId,
    pub(crate) event: EventId,
    /// Which delivery of the event this is, from 1.
    pub(crate) attempt: u8,
    /// The delivery that this one repeats because it failed; the same as `attempt` when it repeats none. To a FIFO queue
    /// both are one message.
    pub(crate) repeats: u8,
    /// The token that it holds, as its consumer gets it, and when the lease ends.
    pub(crate) lease: Option<(SignedToken, DateTime<Utc>)>,
    pub(crate) terms: Arc<Terms>,
}

pub(crate) fn rfc3339(instant: DateTime<Utc>) -> String {
    instant.to_rfc3339_opts(SecondsFormat::AutoSi, true)
}

impl EventToSend {
    /// The JSON text that the consumer gets.
    pub(crate) fn body(&self) -> String {
        let run = self.event.run();
        let count = self.terms.terms.count.get();
        let body = EventBody {
            event_id: self.event.to_string(),
            job_id: run.job().to_string(),
            client_id: self.client.to_string(),
            run_id: run.to_string(),
            index: self.event.index(),
            count,
            launch_at: rfc3339(run.launch_at()),
            attempt: self.attempt,
            token: self.lease.as_ref().map(|(token, _)| token.to_string()),
            lease_expires_at: self.lease.as_ref().map(|(_, end)| rfc3339(*end)),
            payload: self.terms.payloads.for_event(&self.event, count),
        };
        serde_json::to_string(&body).unwrap_or_default()
    }
}
