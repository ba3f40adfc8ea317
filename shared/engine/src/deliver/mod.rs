//! Delivery: what a consumer receives, and how it gets there.
//!
//! At least once; the event id is the idempotency key. HTTP calls take time, so granted events for HTTP targets travel
//! through the dispatch queue and never run where slots are handed on.

pub(crate) mod callback;
pub(crate) mod chunk;
#[cfg(test)]
mod documented;
pub mod event;
mod fifo;
pub(crate) mod granted;
pub(crate) mod http;
mod payload;
mod signature;
mod sqs;
mod trouble;
mod wanted;

use chrono::Duration;
use tidegate_domain::ids::ClientId;
use tidegate_domain::ids::RunId;
use tidegate_domain::job::{self, Payload};
use tidegate_domain::limits::SQS_DELAY_SECONDS;
use tidegate_domain::time::seconds;

use crate::{Engine, EngineError};
pub(crate) use event::Delivery;
pub(crate) use payload::Payloads;

/// The terms of a run with its payloads, wherever they lay.
#[derive(Debug, Clone)]
pub(crate) struct Terms {
    pub(crate) terms: job::Terms,
    pub(crate) payloads: Payloads,
}

/// What came of sending one event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Sent {
    /// The target has it.
    Done,
    /// It may work later.
    Failed {
        reason: String,
        /// What the target asked for.
        retry_after: Option<Duration>,
    },
    /// It never will.
    Refused { reason: String },
}

impl Engine {
    /// Adds the payloads to terms that may have travelled without; `None` when they are gone with their job.
    ///
    /// A large payload is stored once, in the job: an event gets the one that the job has when it is delivered.
    pub(crate) async fn complete_terms(
        &self,
        client: &ClientId,
        run: &RunId,
        terms: job::Terms,
    ) -> Result<Option<Terms>, EngineError> {
        let in_job = match &terms.payload {
            Payload::Inline(_) | Payload::List(_) | Payload::Template(_) => None,
            Payload::InJob => match self.present_job(client, run.job()).await? {
                Some(job) => Some(job.terms.payload),
                None => return Ok(None),
            },
        };
        let payload = in_job.as_ref().unwrap_or(&terms.payload);
        let payloads = Payloads::of(payload, terms.count.get());
        Ok(payloads.map(|payloads| Terms { terms, payloads }))
    }

    /// Sends events to their targets. The answers are in the order of the events.
    pub(crate) async fn send(&self, deliveries: &[Delivery]) -> Vec<Sent> {
        let is_http = |delivery: &Delivery| delivery.terms.terms.target.is_http();
        let (http, queues): (Vec<usize>, Vec<usize>) =
            (0..deliveries.len()).partition(|index| deliveries.get(*index).is_some_and(is_http));
        let mut sent = vec![Sent::Done; deliveries.len()];
        let answers =
            [self.send_to_queues(deliveries, &queues).await, self.send_to_endpoints(deliveries, &http).await];
        for (index, outcome) in answers.into_iter().flatten() {
            if let Some(place) = sent.get_mut(index) {
                *place = outcome;
            }
        }
        sent
    }
}

/// The longest wait between two deliveries: the longest delay of SQS.
const MOST_BACKOFF: Duration = seconds(SQS_DELAY_SECONDS as i64);

/// How long to wait before delivery number `attempt + 1`: 2, 4, 8 ... seconds, at most 15 minutes.
pub(crate) fn backoff(attempt: u8, asked_for: Option<Duration>) -> Duration {
    let own = seconds(1_i64 << attempt.clamp(1, 9));
    own.max(asked_for.unwrap_or_default()).min(MOST_BACKOFF)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn backoff_doubles_and_honours_the_target_up_to_what_sqs_can_delay() {
        let seconds = |attempt, asked: Option<i64>| backoff(attempt, asked.map(seconds)).num_seconds();
        assert_eq!([1, 2, 3, 20].map(|a| seconds(a, None)), [2, 4, 8, 512]);
        assert_eq!(seconds(1, Some(60)), 60);
        assert_eq!(seconds(1, Some(7_200)), 900);
    }
}
