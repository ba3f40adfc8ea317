//! One-time jobs under ids that we make: one row is the whole job, and nobody else writes it.
//!
//! Where an event goes ahead of its job, whoever receives it and finds no job makes the id void, so that a store which
//! comes too late does nothing. A write that jobs share asks for nothing, so it is made only while there is time, and
//! looked at afterwards: an event that may have come before its job is sent again.

use chrono::{DateTime, Utc};
use tidegate_domain::ids::{ClientId, JobId};
use tidegate_domain::job::Job;
use tidegate_domain::limits::WRITE_ROUNDS;
use tidegate_domain::time::{Window, seconds, shifted};
use tidegate_store::Create;
use tidegate_store::launch::{Child, OutboxEntry};
use tidegate_store::ticker::Watermark;
use tracing::warn;

use super::Jobs;
use super::first::is_out_of_reach;
use crate::emit::Emitter;
use crate::{EngineError, Written};

/// How long before its launch a job is stored with others whose event is under way, at the least, in seconds.
const SHARED_WRITE_SECONDS: i64 = 10;
/// How long before its launch such a job must be there for its event to find it, in seconds.
const IN_TIME_SECONDS: i64 = 2;

/// The watermark; `None` where there was none, or it cannot have passed any of the jobs that it was to be read for.
pub(crate) type Look = Option<Watermark>;

impl Jobs {
    /// Ids for a client's one-time jobs that are due at some instants, in their order.
    pub(super) async fn one_time_ids(
        &self,
        client: &ClientId,
        instants: &[DateTime<Utc>],
    ) -> Result<Vec<JobId>, EngineError> {
        let ports = (&self.store, &*self.clock, &*self.random);
        let places = self.places.take(ports, client, instants).await?;
        Ok(places.into_iter().map(|place| JobId::one_time(place, self.random.next_u64())).collect())
    }

    /// Another id in the place of one, which others are not stored under.
    pub(super) fn other_id(&self, id: &JobId) -> JobId {
        let other = |place| JobId::one_time(place, self.random.next_u64());
        id.one_time_shard().map_or_else(|| id.clone(), other)
    }

    /// Creates a one-time job with a generated id.
    pub(super) async fn create_one_time(&self, mut job: Job) -> Result<Written<Job>, EngineError> {
        for round in 0..WRITE_ROUNDS {
            let Some(launch_at) = self.goes_ahead(&job) else {
                self.write_plainly(&job, true).await?;
                return Ok(Written::Created(job));
            };
            // Its event is under way before it is stored: no outbox row is needed in between.
            let event = Child::of(&job).occurrence(launch_at);
            let is_sent = match round {
                0 => self.emission.send_ahead_gathered(event).await?,
                _ => self.emission.send_ahead(&[event]).await.map(|_| true)?,
            };
            if is_sent && self.store_sent(&job, launch_at).await? {
                return Ok(Written::Created(job));
            }
            // What may be under way finds no job under the former id.
            job.id = self.other_id(&job.id);
        }
        Err(EngineError::Contended { what: "a one-time job", rounds: WRITE_ROUNDS })
    }

    /// Stores a one-time job whose event is under way. Not, when that took so long that its event has come, and found no job:
    /// the id is void.
    async fn store_sent(&self, job: &Job, launch_at: DateTime<Utc>) -> Result<bool, EngineError> {
        if self.has_time(job, launch_at) && self.store_gathered(job).await?.is_some() {
            if self.is_late(launch_at) {
                self.send_again(job, launch_at).await?;
            }
            return Ok(true);
        }
        self.store_sent_alone(job).await
    }

    /// The same, whatever time there is.
    pub(super) async fn store_sent_alone(&self, job: &Job) -> Result<bool, EngineError> {
        let created = self.store.create_one_time(job).await?;
        Ok(created == Create::Done || self.store.one_time(&job.client, &job.id).await?.is_some())
    }

    /// Stores a one-time job in one write with those of calls that came meanwhile, and looks at the watermark as
    /// [`Self::store_and_look`] does. `None`: nobody knows whether it was stored.
    pub(super) async fn store_gathered(&self, job: &Job) -> Result<Option<Look>, EngineError> {
        let store = |jobs: Vec<Job>| async move { self.store_and_look(&jobs).await };
        self.gathered.with_others(job.clone(), store).await
    }

    /// Stores one-time jobs in writes that they share. One look at the watermark serves them all: the jobs are written before it
    /// is read, so that either the emitter sees their rows or we see that it has passed them.
    pub(super) async fn store_and_look(&self, jobs: &[Job]) -> Result<Look, EngineError> {
        self.store.create_one_times(jobs).await?;
        match jobs.iter().all(|job| is_out_of_reach(job, None)) {
            true => Ok(None),
            false => self.watermark_or_first().await,
        }
    }

    /// Whether a job that is due then may share a write, though its event is under way. Not a throttled one: its event could
    /// not be sent again without coming twice.
    pub(super) fn has_time(&self, job: &Job, launch_at: DateTime<Utc>) -> bool {
        job.terms.policy.is_none() && launch_at >= shifted(self.clock.now(), seconds(SHARED_WRITE_SECONDS))
    }

    /// Whether an event of this instant that is under way may have come before its job was stored, which was now.
    pub(super) fn is_late(&self, launch_at: DateTime<Utc>) -> bool {
        launch_at <= shifted(self.clock.now(), seconds(IN_TIME_SECONDS))
    }

    /// Sends the event of a job again that may have come before the job was stored. Where it came after, it is not delivered
    /// again.
    pub(super) async fn send_again(&self, job: &Job, launch_at: DateTime<Utc>) -> Result<(), EngineError> {
        warn!(job = %job.id, "a job was stored so late that its event may have come before it: it is sent again");
        let Ok(window) = Window::new(launch_at, shifted(launch_at, seconds(1))) else { return Ok(()) };
        let again = OutboxEntry { child: Child::of(job), window, written_at: self.clock.now() };
        self.emission.emit_launches(&again, true, Emitter::Master).await.map(drop)
    }
}
