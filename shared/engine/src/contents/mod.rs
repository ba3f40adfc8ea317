//! What events deliver: the terms and payloads of runs, the packs of single events, and the jobs that they are of, read from
//! the store and remembered where they never change.
//!
//! Deliberately absent: whether an event may go (`throttle`) or is still wanted (`deliver`).

mod memory;
mod payload;

use std::collections::BTreeMap;
use std::sync::Arc;

use chrono::{DateTime, Utc};
use tidegate_domain::calendar::{Exclusions, OpenDays};
use tidegate_domain::clock::Clock;
use tidegate_domain::ids::{CalendarId, ClientId, JobId, RunId};
use tidegate_domain::job::{self, Job, Payload};
use tidegate_domain::occurrence::{Occurrence, SkipReason};
use tidegate_domain::pack::{Singles, SinglesId};
use tidegate_domain::policy::PolicyRef;
use tidegate_domain::rules::Rules;
use tidegate_domain::time::{seconds, shifted};
use tidegate_store::Store;
use tidegate_store::jobs::JobRow;
use tracing::{error, warn};

use crate::EngineError;
use crate::figures::ROWS_SET_ASIDE;
use crate::queues::message::ChunkItem;
use memory::Memory;
pub(crate) use payload::Payloads;

/// How long after a change what was planned before is checked before delivery, in seconds: longer than a call may take.
const RECHECK_SECONDS: i64 = 90;

/// The terms of a run with its payloads, wherever they lay.
#[derive(Debug, Clone)]
pub(crate) struct Terms {
    pub(crate) terms: job::Terms,
    pub(crate) payloads: Payloads,
}

/// Reads what events deliver.
pub(crate) struct Contents {
    store: Store,
    clock: Arc<dyn Clock>,
    memory: Memory,
}

impl Contents {
    pub(crate) fn new(store: Store, clock: Arc<dyn Clock>) -> Self {
        Self { store, clock, memory: Memory::new() }
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
        let Some(row) = self.store.run(client, run).await?.filter(|row| row.stopped.is_none()) else {
            return Ok(None);
        };
        let terms = match self.keep_terms(client, run, row.terms).await {
            Err(error) if error.is_of_one_row() => {
                error!(%client, %run, %error, { ROWS_SET_ASIDE } = 1_u64, "a run is set aside: its job cannot be read");
                self.store.stop_run(client, run, SkipReason::NotEmittable.as_str()).await?;
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
        terms: job::Terms,
    ) -> Result<Option<Arc<Terms>>, EngineError> {
        let Some(terms) = self.complete_terms(client, run, terms).await? else { return Ok(None) };
        let terms = Arc::new(terms);
        self.memory.keep_run(client, run, &terms);
        Ok(Some(terms))
    }

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
            // In a box: most need no job, and would be moved about with the room for one.
            Payload::InJob => match Box::pin(self.present_job(client, run.job())).await? {
                Some(job) => Some(job.terms.payload),
                None => return Ok(None),
            },
        };
        let payload = in_job.as_ref().unwrap_or(&terms.payload);
        let payloads = Payloads::of(payload, terms.count.get());
        Ok(payloads.map(|payloads| Terms { terms, payloads }))
    }

    /// Forgets a run's terms: it was stopped.
    pub(crate) fn forget_run(&self, client: &ClientId, run: &RunId) {
        self.memory.forget_run(client, run);
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
        let Some(pack) = self.store.pack(client, policy, id).await? else { return Ok(None) };
        let pack = Arc::new(pack);
        self.memory.keep_pack(client, policy, &pack);
        Ok(Some(pack))
    }

    /// Remembers a pack that was just written.
    pub(crate) fn keep_pack(&self, policy: &PolicyRef, pack: &Arc<Singles>) {
        self.memory.keep_pack(&policy.client, &policy.policy, pack);
    }

    /// The terms of a single event of a pack with its payload; `None` when that is gone with its job.
    pub(crate) async fn member_terms(&self, member: &Occurrence) -> Result<Option<Arc<Terms>>, EngineError> {
        let run = member.run_id();
        if let Some(known) = self.memory.run(&member.client, &run) {
            return Ok(Some(known));
        }
        self.keep_terms(&member.client, &run, member.terms.clone()).await
    }

    /// A job as it is now, whatever table it lies in; `None` when it was deleted.
    pub(crate) async fn present_job(
        &self,
        client: &ClientId,
        id: &JobId,
    ) -> Result<Option<Job>, EngineError> {
        if id.one_time_shard().is_some() {
            return Ok(self.store.one_time(client, id).await?);
        }
        Ok(match self.store.job(client, id).await? {
            Some(JobRow::Live(job)) => Some(job),
            _ => None,
        })
    }

    /// The days on which the calendars of a job let it launch, as they are now: a read for each.
    pub(crate) async fn open_days(&self, client: &ClientId, rules: &Rules) -> Result<OpenDays, EngineError> {
        let mut read = BTreeMap::new();
        for id in rules.all_calendars() {
            read.insert(id, self.listed(client, id).await?);
        }
        Ok(OpenDays::of(rules, |id| read.get(id).cloned().flatten()))
    }

    /// What a calendar lists; `None` when it is gone.
    pub(crate) async fn listed(
        &self,
        client: &ClientId,
        id: &CalendarId,
    ) -> Result<Option<Arc<Exclusions>>, EngineError> {
        Ok(self.store.calendar(client, id).await?.map(|calendar| Arc::new(calendar.exclusions)))
    }

    /// Says that what was planned for a client must be looked up before it is delivered, from now on for a while.
    pub(crate) async fn mark_dirty(&self, client: &ClientId) -> Result<(), EngineError> {
        let until = shifted(self.clock.now(), seconds(RECHECK_SECONDS));
        Ok(self.store.mark_dirty(client, until).await?)
    }

    /// Records that an occurrence cannot be emitted. Its neighbours are.
    pub(crate) async fn set_aside(&self, occurrence: &Occurrence, reason: &str) -> Result<(), EngineError> {
        let Occurrence { client, job, launch_at, .. } = occurrence;
        let word = SkipReason::NotEmittable.as_str();
        error!(%client, %job, %launch_at, reason, { ROWS_SET_ASIDE } = 1_u64, "a launch is set aside: it cannot be emitted");
        let recorded = self.store.record_skip(occurrence, word, self.clock.now()).await;
        if let Err(error) = &recorded
            && error.is_of_one_row()
        {
            warn!(%client, %job, %error, "a launch is set aside without a record");
            return Ok(());
        }
        recorded?;
        // A batch has its run already.
        Ok(self.store.stop_run(client, &occurrence.run_id(), word).await.map(drop)?)
    }

    /// Records under its job that events of a chunk cannot be read. Their companions are delivered.
    pub(crate) async fn set_aside_item(
        &self,
        client: &ClientId,
        launch_at: DateTime<Utc>,
        item: &ChunkItem,
        error: &EngineError,
    ) -> Result<(), EngineError> {
        error!(%client, job = item.job, %launch_at, %error, { ROWS_SET_ASIDE } = 1_u64, "events of a chunk are set aside");
        if let Ok(job) = item.job.parse() {
            let run = RunId::new(job, item.revision, launch_at);
            self.store.record_unreadable_run(client, &run, self.clock.now()).await?;
        }
        Ok(())
    }
}
