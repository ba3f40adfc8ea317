//! What a consumer receives.

use std::sync::Arc;

use chrono::{DateTime, SecondsFormat, Utc};
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

    /// The JSON text that the consumer gets.
    pub(crate) fn body(&self) -> String {
        let run = self.event.run();
        let count = self.terms.terms.count.get();
        let body = Event {
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
        };
        serde_json::to_string(&body).unwrap_or_default()
    }
}
