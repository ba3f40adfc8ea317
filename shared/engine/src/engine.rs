//! The engine's parts, put together once per process.

use std::sync::Arc;

use chrono::{DateTime, Utc};
use tidegate_domain::ids::{ClientId, RunId};
use tidegate_domain::occurrence::{NonRun, Occurrence};
use tidegate_domain::pack::{Singles, SinglesId};
use tidegate_store::Store;
use tracing::error;

use crate::EngineError;
use crate::clock::Clock;
use crate::deliver::Terms;
use crate::deliver::http::HttpTarget;
use crate::effect::PolicyRef;
use crate::memory::Memory;
use crate::random::Random;

/// What differs between deployments.
#[derive(Debug, Clone)]
pub struct Config {
    /// The queue between emission and delivery.
    pub dispatch_queue_url: String,
    /// The queue of the parts of large scans.
    pub scan_queue_url: String,
    /// The queue that consumers release tokens through.
    pub release_queue_url: String,
    /// Whether HTTP targets may have private, loopback and link-local addresses. For local mode and emulators.
    pub allow_private_targets: bool,
}

/// What an engine is made of.
pub struct Parts {
    /// The tables.
    pub store: Store,
    /// SQS, for our queue and the consumers'.
    pub sqs: aws_sdk_sqs::Client,
    /// What time it is.
    pub clock: Arc<dyn Clock>,
    /// Where ids get their randomness.
    pub random: Arc<dyn Random>,
    /// What differs between deployments.
    pub config: Config,
}

/// The engine. Cheap to clone.
#[derive(Clone)]
pub struct Engine {
    parts: Arc<Parts>,
    pub(crate) http: HttpTarget,
    memory: Arc<Memory>,
    few: usize,
}

/// Single events of one line and minute that are too few for a pack, unless a test says otherwise.
const FEW: usize = 10;

impl Engine {
    /// Puts an engine together.
    pub fn new(parts: Parts) -> Self {
        Self {
            http: HttpTarget::new(parts.config.allow_private_targets),
            parts: Arc::new(parts),
            memory: Arc::new(Memory::new()),
            few: FEW,
        }
    }

    /// The same engine, which takes so many single events of one line and minute for too few for a pack. For tests: a small
    /// world has few.
    #[must_use]
    pub fn with_few(self, few: usize) -> Self {
        Self { few, ..self }
    }

    pub(crate) fn few(&self) -> usize {
        self.few
    }

    /// The clock that the engine goes by.
    pub fn clock(&self) -> &dyn Clock {
        &*self.parts.clock
    }

    /// The tables.
    pub fn store(&self) -> &Store {
        &self.parts.store
    }

    /// Where ids and keys get their randomness.
    pub fn random(&self) -> &dyn Random {
        &*self.parts.random
    }

    pub(crate) fn sqs(&self) -> &aws_sdk_sqs::Client {
        &self.parts.sqs
    }

    pub(crate) fn config(&self) -> &Config {
        &self.parts.config
    }

    pub(crate) fn memory(&self) -> &Memory {
        &self.memory
    }

    pub(crate) fn now(&self) -> DateTime<Utc> {
        self.parts.clock.now()
    }

    /// The terms of a run, from memory where possible. `None` when there is no such run, it was stopped, or its
    /// payload is gone with its job. A run whose payload lies in a job that cannot be read is stopped as not emittable.
    pub(crate) async fn run_terms(
        &self,
        client: &ClientId,
        run: &RunId,
    ) -> Result<Option<Arc<Terms>>, EngineError> {
        if let Some(known) = self.memory.run(client, run) {
            return Ok(Some(known));
        }
        let Some(row) = self.store().run(client, run).await?.filter(|row| row.stopped.is_none()) else {
            return Ok(None);
        };
        let terms = match self.keep_terms(client, run, row.terms).await {
            Err(error) if error.is_of_one_row() => {
                error!(%client, %run, %error, "a run is set aside: its job cannot be read");
                self.store().stop_run(client, run, NonRun::NotEmittable.as_str()).await?;
                return Ok(None);
            }
            terms => terms?,
        };
        Ok(terms)
    }

    /// Terms with their payload, which are remembered; `None` when that is gone with its job.
    async fn keep_terms(
        &self,
        client: &ClientId,
        run: &RunId,
        terms: tidegate_domain::job::Terms,
    ) -> Result<Option<Arc<Terms>>, EngineError> {
        let Some(terms) = self.complete_terms(client, run, terms).await? else { return Ok(None) };
        let terms = Arc::new(terms);
        self.memory.keep_run(client, run, &terms);
        Ok(Some(terms))
    }

    /// A pack of single events; `None` when its time is over.
    pub(crate) async fn pack(
        &self,
        policy: &PolicyRef,
        id: SinglesId,
    ) -> Result<Option<Arc<Singles>>, EngineError> {
        let PolicyRef { client, policy } = policy;
        if let Some(known) = self.memory.pack(client, policy, id) {
            return Ok(Some(known));
        }
        let Some(pack) = self.store().pack(client, policy, id).await? else { return Ok(None) };
        let pack = Arc::new(pack);
        self.memory.keep_pack(client, policy, &pack);
        Ok(Some(pack))
    }

    /// The terms of a single event of a pack with its payload; `None` when that is gone with its job.
    pub(crate) async fn member_terms(&self, member: &Occurrence) -> Result<Option<Arc<Terms>>, EngineError> {
        let run = member.run_id();
        if let Some(known) = self.memory.run(&member.client, &run) {
            return Ok(Some(known));
        }
        self.keep_terms(&member.client, &run, member.terms.clone()).await
    }

    /// Forgets a run's terms: it was stopped.
    pub(crate) fn forget_run(&self, client: &ClientId, run: &RunId) {
        self.memory.forget_run(client, run);
    }
}
