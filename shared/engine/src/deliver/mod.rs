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
mod request;
mod signature;
mod sqs;
mod trouble;
mod wanted;

use std::sync::Arc;

use chrono::Duration;
use tidegate_domain::clock::Clock;
use tidegate_domain::ids::{ClientId, RunId};
use tidegate_domain::target::Target;
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
            Target::Http { url, .. } => self.post_completion(client, url, (id, body)).await,
        }
    }
}
