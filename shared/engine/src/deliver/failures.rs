//! Keeps what targets answered that did not take an event, for those who look for the reason.
//!
//! Where that fails it is not tried again: what becomes of the event does not depend on it. It costs a write unit or two for each
//! delivery that fails, unless the job's history says that nothing is kept.

use chrono::{DateTime, Utc};
use tidegate_domain::job::History;
use tidegate_store::events::Record;
use tidegate_store::failures::FailedDelivery;
use tracing::warn;

use super::{Delivery, EventToSend, Sent};

/// What came of sending an event, and what was seen of its call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Answered {
    pub(crate) sent: Sent,
    pub(crate) seen: Seen,
}

/// What was seen of a call.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Seen {
    /// The status of its answer.
    pub(crate) status: Option<u16>,
    /// How long it took, in milliseconds.
    pub(crate) took_ms: Option<u32>,
    /// The beginning of its answer.
    pub(crate) text: Option<String>,
}

impl From<Sent> for Answered {
    fn from(sent: Sent) -> Self {
        Self { sent, seen: Seen::default() }
    }
}

impl Delivery {
    /// Keeps the failures among some deliveries.
    pub(super) async fn keep_failures(&self, deliveries: &[EventToSend], answers: &[Answered]) {
        let now = self.clock.now();
        let failures: Vec<Record> = deliveries
            .iter()
            .zip(answers)
            .filter_map(|(delivery, answer)| failure(delivery, answer, now))
            .collect();
        if failures.is_empty() {
            return;
        }
        if let Err(error) = self.store.keep(&failures).await {
            warn!(%error, failures = failures.len(), "what targets answered is not kept");
        }
    }
}

fn failure(delivery: &EventToSend, answer: &Answered, now: DateTime<Utc>) -> Option<Record> {
    let reason = match &answer.sent {
        Sent::Done => return None,
        _ if delivery.terms.terms.history == History::None => return None,
        Sent::Failed { reason, .. } | Sent::Refused { reason } => reason.clone(),
    };
    let Seen { status, took_ms, text } = answer.seen.clone();
    let failed = FailedDelivery { attempt: delivery.attempt, at: now, took_ms, status, reason, answer: text };
    Some(Record::FailedDelivery {
        client: delivery.client.clone(),
        event: delivery.event.clone(),
        failed,
        kept: delivery.terms.terms.history_days,
    })
}
