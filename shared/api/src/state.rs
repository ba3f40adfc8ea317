//! What every route works with.

use std::sync::Arc;

use tidegate_engine::{EmissionStatus, Engine};
use tidegate_store::KeyHash;
use tidegate_store::clients::Client;
use tidegate_store::keys::ApiKey;

use crate::memory::Memory;

/// How long a key is believed to be a client's, in seconds: so long may a revoked key still be taken.
const KEY_SECONDS: i64 = 10;
/// How long a queue is believed to be there, in seconds.
const QUEUE_SECONDS: i64 = 60;
/// How long what was read of emission is believed, in seconds: the health route needs no key, and must cost little.
const EMISSION_SECONDS: i64 = 5;

/// What the place that an API serves in knows of a queue's URL, beside what SQS says of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum QueueHint {
    /// Consumers reach no queue under this URL: why, and which one is right.
    WrongUrl(String),
    /// How the queue is created, for the case that it is missing.
    HowToCreate(String),
}

type QueueHints = dyn Fn(&str) -> QueueHint + Send + Sync;

/// What every route works with. Cheap to clone.
#[derive(Clone)]
pub struct ApiState {
    pub(crate) engine: Arc<Engine>,
    pub(crate) known_keys: Arc<Memory<KeyHash, (ApiKey, Client)>>,
    /// Keys that no client has. Keys are random, so none of them will ever be given out.
    pub(crate) refused_keys: Arc<Memory<KeyHash, ()>>,
    pub(crate) known_emission: Arc<Memory<(), EmissionStatus>>,
    pub(crate) known_queues: Arc<Memory<String, ()>>,
    admin_key_sha256: Option<Arc<str>>,
    /// What clients may name that are registered without a word of it.
    targets_unless_said: &'static [&'static str],
    queue_hints: Option<Arc<QueueHints>>,
}

impl ApiState {
    /// An API over `engine`. The admin key is known by its SHA-256 in hex only; without one, nobody can register
    /// clients. A client that is registered without a list of targets may name any.
    pub fn new(engine: Engine, admin_key_sha256: Option<&str>) -> Self {
        Self {
            engine: Arc::new(engine),
            known_keys: Arc::new(Memory::for_seconds(KEY_SECONDS)),
            refused_keys: Arc::new(Memory::for_seconds(KEY_SECONDS)),
            known_emission: Arc::new(Memory::for_seconds(EMISSION_SECONDS)),
            known_queues: Arc::new(Memory::for_seconds(QUEUE_SECONDS)),
            admin_key_sha256: admin_key_sha256.map(|hex| hex.trim().to_ascii_lowercase().into()),
            targets_unless_said: &["*"],
            queue_hints: None,
        }
    }

    /// The same API, in which a client that is registered without a list of targets may name none.
    #[must_use]
    pub fn with_targets_named(self) -> Self {
        Self { targets_unless_said: &[], ..self }
    }

    /// What a client may name that is registered without a word of it.
    pub(crate) fn targets_unless_said(&self) -> Vec<String> {
        self.targets_unless_said.iter().copied().map(str::to_owned).collect()
    }

    /// The same API, which asks `hints` about each queue URL that a job names.
    #[must_use]
    pub fn with_queue_hints(self, hints: impl Fn(&str) -> QueueHint + Send + Sync + 'static) -> Self {
        Self { queue_hints: Some(Arc::new(hints)), ..self }
    }

    pub(crate) fn queue_hint(&self, queue_url: &str) -> Option<QueueHint> {
        self.queue_hints.as_ref().map(|hints| hints(queue_url))
    }

    pub(crate) fn is_admin(&self, hash: &KeyHash) -> bool {
        self.admin_key_sha256.as_deref() == Some(hash.as_str())
    }
}
