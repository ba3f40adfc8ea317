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
mod signature;
mod sqs;
mod trouble;
mod wanted;

use std::sync::Arc;

use chrono::Duration;
use tidegate_domain::limits::SQS_DELAY_SECONDS;
use tidegate_domain::time::seconds;
use tidegate_store::Store;

use crate::clock::Clock;
use crate::contents::Contents;
use crate::queues::Queues;
use crate::token_key::TokenKeys;
pub(crate) use event::EventToSend;
use http::HttpTarget;

/// Takes events to their targets.
pub(crate) struct Delivery {
    pub(crate) store: Store,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) sqs: aws_sdk_sqs::Client,
    pub(crate) http: HttpTarget,
    pub(crate) queues: Arc<Queues>,
    pub(crate) contents: Arc<Contents>,
    pub(crate) keys: Arc<TokenKeys>,
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

impl Delivery {
    /// Sends events to their targets. The answers are in the order of the events.
    pub(crate) async fn send(&self, deliveries: &[EventToSend]) -> Vec<Sent> {
        let is_http = |delivery: &EventToSend| delivery.terms.terms.target.is_http();
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
