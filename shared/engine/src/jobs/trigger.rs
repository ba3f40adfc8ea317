//! Triggering a job: a run of it at once, beside its schedule.

use chrono::{DateTime, Utc};
use futures::future::BoxFuture;
use tidegate_domain::ids::{ClientId, JobId, RunId};
use tidegate_domain::job::Job;
use tidegate_domain::limits::WRITE_ROUNDS;
use tidegate_domain::occurrence::SkipReason;
use tidegate_domain::rules::Rules;
use tidegate_domain::time::{Cadence, Instants, Window, seconds, shifted};
use tidegate_store::launch::{Child, OutboxEntry, Part};
use tidegate_store::{KeyHash, Write};
use tracing::warn;

use super::Jobs;
use crate::EngineError;
use crate::emit::Emitter;

/// What came of triggering a job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Triggered {
    /// The run is under way.
    Run(RunId),
    /// A call with the same key triggered it before: this run. Nothing was done now.
    Before(RunId),
    /// There is no such job.
    Absent,
    /// It is a single row that launches once: it has no run beside that.
    OneTime,
    /// The job's calendars exclude this instant, or do not have it: its event would not be delivered.
    Excluded,
}

impl Jobs {
    /// Makes a run of a job at once, beside its schedule, whether it is paused or not. What throttles its other runs, and
    /// the rule for those that overlap, count for it too; start, end and jitter do not. The launch is the job's first free
    /// second from now on: one that neither its schedule nor another call has. With an idempotency key, a call that is made
    /// again finds the run of the first.
    ///
    /// # Errors
    /// [`EngineError::Store`] when DynamoDB refuses a call or does not answer, or a row that is needed cannot be read;
    /// `Contended` when each of the next `WRITE_ROUNDS` seconds has a launch of the job. Nothing was triggered then, or
    /// nobody knows: with a key, repeating the call is safe.
    pub fn trigger<'a>(
        &'a self,
        client: &'a ClientId,
        id: &'a JobId,
        key: Option<&'a str>,
    ) -> BoxFuture<'a, Result<Triggered, EngineError>> {
        Box::pin(async move {
            let Some(job) = self.contents.present_job(client, id).await? else {
                return Ok(Triggered::Absent);
            };
            if id.one_time_shard().is_some() {
                return Ok(Triggered::OneTime);
            }
            let key = key.map(KeyHash::of);
            if let Some(run) = self.triggered_before(&job, key.as_ref()).await? {
                return Ok(Triggered::Before(run));
            }
            let now = self.clock.now();
            let cadence = job.trigger.cadence();
            let open_days = self.contents.open_days(client, &job.rules).await?;
            for round in 0..WRITE_ROUNDS {
                let second = now.timestamp().saturating_add(round.into());
                let Some(launch_at) = DateTime::from_timestamp(second, 0) else { break };
                // Delivery takes the jitter of the job off each launch.
                let scheduled_at = shifted(launch_at, -job.rules.jitter.offset(client, id));
                let Ok(window) = Window::new(scheduled_at, shifted(scheduled_at, seconds(1))) else { break };
                // A launch may come to be moved there.
                let candidates = cadence.candidates(job.rules.on_closed_day);
                if !candidates.latest(window, 1).is_empty() {
                    continue;
                }
                match open_days.refuses(scheduled_at, job.trigger.zone()) {
                    Some(SkipReason::OnRequest) => continue,
                    Some(_) => return Ok(Triggered::Excluded),
                    None => {}
                }
                let Some(owed) =
                    Instants::new([launch_at]).ok().and_then(|at| owed_at(&job, Part::Triggered, at, now))
                else {
                    break;
                };
                if self.store.trigger(&owed, key.as_ref()).await? == Write::Done {
                    // It is owed: whatever fails now, the next tick pays it.
                    if let Err(error) = self.emission.publish(&owed, false, Emitter::Master).await {
                        warn!(%error, job = %id, "a triggered launch is left to the next tick");
                    }
                    return Ok(Triggered::Run(RunId::new(id.clone(), job.revision, launch_at)));
                }
                if let Some(run) = self.triggered_before(&job, key.as_ref()).await? {
                    return Ok(Triggered::Before(run));
                }
            }
            Err(EngineError::Contended { what: "a second without a launch", rounds: WRITE_ROUNDS })
        })
    }

    async fn triggered_before(&self, job: &Job, key: Option<&KeyHash>) -> Result<Option<RunId>, EngineError> {
        match key {
            Some(key) => Ok(self.store.triggered_by_key(&job.client, &job.id, key).await?),
            None => Ok(None),
        }
    }
}

/// Launches of a job at instants, beside what its trigger and its rules say: they are owed from `now` on.
pub(super) fn owed_at(job: &Job, part: Part, instants: Instants, now: DateTime<Utc>) -> Option<OutboxEntry> {
    let window = Window::new(instants.first(), shifted(instants.last(), seconds(1))).ok()?;
    let child = Child {
        cadence: Cadence::At(instants),
        part,
        rules: Rules::default(),
        paused: false,
        emit_from: window.to(),
        ..Child::of(job)
    };
    Some(OutboxEntry { child, window, written_at: now })
}
