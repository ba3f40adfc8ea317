//! Delivery: what a consumer receives, and how it gets there.
//!
//! At least once; the event id is the idempotency key. What takes time (`Transport::is_inline`) travels through the dispatch
//! queue, and is never sent where slots are handed on. A kind of target is a file here (`sqs`, `http`, `event_bridge`, `sns`,
//! `lambda`, `step_functions`) and an arm of the `match` below.

pub(crate) mod aws_call;
mod back_to_line;
pub(crate) mod callback;
pub(crate) mod chunk;
#[cfg(test)]
mod connections;
#[cfg(test)]
mod documented;
pub mod event;
mod event_bridge;
mod failures;
mod fifo;
pub(crate) mod granted;
mod held_back;
pub(crate) mod http;
mod lambda;
mod noted;
mod overdue;
mod pace;
mod request;
mod sidelined;
mod sidelined_in_line;
mod signature;
mod sns;
mod sqs;
mod step_functions;
mod telling;
mod trouble;
mod wanted;

use std::collections::BTreeMap;
use std::sync::Arc;

use chrono::Duration;
use tidegate_domain::backpressure::Sign;
use tidegate_domain::clock::Clock;
use tidegate_domain::ids::{ClientId, RunId};
use tidegate_domain::lateness::Lateness;
use tidegate_domain::target::Target;
use tidegate_store::Store;

use crate::EngineError;
use crate::bus::Bus;
use crate::contents::Contents;
use crate::counters::Counter;
use crate::queues::Queues;
use crate::random::Random;
use crate::regions::Regions;
use crate::secrets::Secrets;
use crate::token_key::TokenKeys;
use aws_call::AwsCaller;
pub(crate) use event::EventToSend;
use failures::Answered;
use http::HttpTarget;

/// Takes events to their targets.
pub(crate) struct Delivery {
    pub(crate) store: Store,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) random: Arc<dyn Random>,
    pub(crate) regions: Arc<Regions>,
    pub(crate) http: HttpTarget,
    pub(crate) aws: AwsCaller,
    pub(crate) queues: Arc<Queues>,
    pub(crate) contents: Arc<Contents>,
    pub(crate) keys: Arc<TokenKeys>,
    pub(crate) secrets: Arc<Secrets>,
    pub(crate) bus: Option<Arc<Bus>>,
    /// `None`: how late events come is not counted.
    pub(crate) lateness: Option<Arc<Counter<Lateness>>>,
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
        /// The target shows that it cannot keep up: it says so, or gives no answer in time.
        overloaded: bool,
    },
    /// It never will.
    Refused { reason: String },
}

impl Sent {
    /// It may work later, and says nothing of how busy its target is.
    pub(crate) fn failed(reason: String) -> Self {
        Self::Failed { reason, retry_after: None, overloaded: false }
    }

    /// What it says of a target that cannot keep up; `None`: nothing.
    pub(crate) fn sign(&self) -> Option<Sign> {
        match self {
            Self::Failed { reason, retry_after, overloaded } if *overloaded || retry_after.is_some() => {
                Some(Sign { asks_for: *retry_after, because: reason.clone() })
            }
            _ => None,
        }
    }
}

/// What answers say of whoever cannot keep up: of each the sign that asks for the longest wait. `whose` an answer is, is only asked
/// of those that are a sign.
fn signs<'s, T, K: Ord>(
    answers: impl IntoIterator<Item = (T, &'s Sent)>,
    whose: impl Fn(T) -> K,
) -> BTreeMap<K, Sign> {
    let mut signs = BTreeMap::<K, Sign>::new();
    for (answered, sign) in answers.into_iter().filter_map(|(of, sent)| Some((of, sent.sign()?))) {
        let whose = whose(answered);
        match signs.get(&whose) {
            Some(known) if known.asks_for >= sign.asks_for => {}
            _ => drop(signs.insert(whose, sign)),
        }
    }
    signs
}

/// Whether a code of AWS says that a service gets more than it takes.
fn is_throttling(code: &str) -> bool {
    code.contains("Throttl") || code == "TooManyRequestsException" || code.starts_with("503")
}

/// Events by the kind of their target, as their places among all.
#[derive(Default)]
struct Kinds {
    queues: Vec<usize>,
    endpoints: Vec<usize>,
    buses: Vec<usize>,
    topics: Vec<usize>,
    functions: Vec<usize>,
    machines: Vec<usize>,
}

impl Delivery {
    /// Sends events to their targets. The answers are in the order of the events.
    pub(crate) async fn send(&self, deliveries: &[EventToSend]) -> Vec<Sent> {
        let mut of = Kinds::default();
        for (index, event) in deliveries.iter().enumerate() {
            let kind = match event.terms.terms.target {
                Target::Sqs { .. } => &mut of.queues,
                Target::Http { .. } => &mut of.endpoints,
                Target::EventBridge { .. } => &mut of.buses,
                Target::Sns { .. } => &mut of.topics,
                Target::Lambda { .. } => &mut of.functions,
                Target::StepFunctions { .. } => &mut of.machines,
            };
            kind.push(index);
        }
        let mut answers = vec![Answered::from(Sent::Done); deliveries.len()];
        // Side by side: a chunk that has several kinds takes no longer than the slowest.
        let (queues, endpoints, buses, topics, functions, machines) = tokio::join!(
            self.send_to_queues(deliveries, &of.queues),
            self.send_to_endpoints(deliveries, &of.endpoints),
            self.send_to_buses(deliveries, &of.buses),
            self.send_to_topics(deliveries, &of.topics),
            self.send_to_functions(deliveries, &of.functions),
            self.send_to_machines(deliveries, &of.machines),
        );
        let others = [queues, buses, topics, functions, machines].into_iter().flatten();
        for (index, answer) in others.map(|(index, sent)| (index, sent.into())).chain(endpoints) {
            if let Some(place) = answers.get_mut(index) {
                *place = answer;
            }
        }
        self.keep_failures(deliveries, &answers).await;
        answers.into_iter().map(|answer| answer.sent).collect()
    }

    /// Sends the body of a completion to where its job wants it. `id` is its idempotency key.
    async fn send_completion(
        &self,
        (client, run): (&ClientId, &RunId),
        target: &Target,
        (id, body): (&str, String),
    ) -> Result<Sent, EngineError> {
        match target {
            Target::Sqs { queue_url, .. } => {
                Ok(self.queue_completion((client, run), queue_url, (id, body)).await)
            }
            Target::Http { url, call } => self.post_completion((client, run), (url, call), (id, body)).await,
            // No job is stored with such a one.
            _ => Ok(Sent::Refused { reason: "a completion goes to a queue or to an endpoint".to_owned() }),
        }
    }
}
