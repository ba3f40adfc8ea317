//! Delivery: what a consumer receives, and how it gets there.
//!
//! At least once; the event id is the idempotency key. What takes time (`Transport::is_inline`) travels through the dispatch
//! queue, and is never sent where slots are handed on. A kind of target is a file here (`sqs`, `http`) and an arm of the two
//! `match`es below.

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
use tidegate_domain::clock::Clock;
use tidegate_domain::ids::{ClientId, RunId};
use tidegate_domain::limits::SQS_DELAY_SECONDS;
use tidegate_domain::target::Target;
use tidegate_domain::time::{milliseconds, seconds};
use tidegate_store::Store;

use crate::EngineError;
use crate::contents::Contents;
use crate::queues::Queues;
use crate::random::Random;
use crate::regions::Regions;
use crate::token_key::TokenKeys;
pub(crate) use event::EventToSend;
use http::HttpTarget;

/// Takes events to their targets.
pub(crate) struct Delivery {
    pub(crate) store: Store,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) random: Arc<dyn Random>,
    pub(crate) regions: Arc<Regions>,
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
        let (mut queues, mut endpoints) = (Vec::new(), Vec::new());
        for (index, event) in deliveries.iter().enumerate() {
            match event.terms.terms.target {
                Target::Sqs { .. } => queues.push(index),
                Target::Http { .. } => endpoints.push(index),
            }
        }
        let mut sent = vec![Sent::Done; deliveries.len()];
        let answers = [
            self.send_to_queues(deliveries, &queues).await,
            self.send_to_endpoints(deliveries, &endpoints).await,
        ];
        for (index, outcome) in answers.into_iter().flatten() {
            if let Some(place) = sent.get_mut(index) {
                *place = outcome;
            }
        }
        sent
    }

    /// Sends the body of a completion to where its job wants it. `id` is its idempotency key.
    async fn send_completion(
        &self,
        (client, run): (&ClientId, &RunId),
        target: &Target,
        (id, body): (&str, String),
    ) -> Result<Sent, EngineError> {
        match target {
            Target::Sqs { queue_url } => {
                Ok(self.queue_completion((client, run), queue_url, (id, body)).await)
            }
            Target::Http { url } => self.post_completion(client, url, (id, body)).await,
        }
    }
}

/// The longest wait between two deliveries: the longest delay of SQS.
const MOST_BACKOFF: Duration = seconds(SQS_DELAY_SECONDS as i64);

/// How long to wait before delivery number `attempt + 1`: 2, 4, 8 ... seconds, or what the target asked for, and up to half as
/// long again, by `random`: what failed together does not come again together. At most 15 minutes.
pub(crate) fn backoff(attempt: u8, asked_for: Option<Duration>, random: &dyn Random) -> Duration {
    let least = least_backoff(attempt).max(asked_for.unwrap_or_default()).min(MOST_BACKOFF);
    let half = u64::try_from(least.num_milliseconds() / 2).unwrap_or_default();
    let more = random.next_u64() % half.saturating_add(1);
    let more = milliseconds(i64::try_from(more).unwrap_or_default());
    least.checked_add(&more).unwrap_or(MOST_BACKOFF).min(MOST_BACKOFF)
}

/// How long to wait before delivery number `attempt + 1` at the least.
fn least_backoff(attempt: u8) -> Duration {
    seconds(1_i64 << attempt.clamp(1, 9))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::SeededRandom;

    #[test]
    fn backoff_doubles_and_honours_the_target_up_to_what_sqs_can_delay() {
        let random = SeededRandom::new(1);
        let is_within = |attempt, asked: Option<i64>, least: i64, most: i64| {
            (0..100).all(|_| {
                let waits = backoff(attempt, asked.map(seconds), &random);
                (seconds(least)..=seconds(most)).contains(&waits)
            })
        };
        for (attempt, least) in [(1, 2), (2, 4), (3, 8), (20, 512)] {
            assert!(is_within(attempt, None, least, (least + least / 2).min(900)), "{attempt}");
        }
        assert!(is_within(1, Some(60), 60, 90));
        assert!(is_within(1, Some(7_200), 900, 900));
    }

    #[test]
    fn what_failed_together_does_not_come_again_together() {
        let random = SeededRandom::new(1);
        let waits: std::collections::BTreeSet<_> = (0..100).map(|_| backoff(3, None, &random)).collect();
        assert!(waits.len() > 90, "{waits:?}");
    }
}
