//! Making launches of a job after all that are over: those of a window, or those of them that were missed.
//!
//! They are launches of a revision of the job that begins with the call. So each has an identity of its own, whatever became of the
//! launch of the same instant before, and what is recorded of that stays.

use chrono::{DateTime, Utc};
use futures::future::BoxFuture;
use tidegate_domain::change::What;
use tidegate_domain::flow::{Flow, Overlap};
use tidegate_domain::ids::{ClientId, JobId};
use tidegate_domain::job::{Job, Terms};
use tidegate_domain::limits::{AT_INSTANTS, WRITE_ROUNDS};
use tidegate_domain::time::{Instants, Window};
use tidegate_store::jobs::JobRow;
use tidegate_store::launch::{OutboxEntry, Part};
use tidegate_store::{CallKey, MadeLaunches, Write};
use tracing::warn;

use super::trigger::owed_at;
use super::{Beside, JobDraft, Jobs};
use crate::EngineError;
use crate::emit::Emitter;
use crate::queries::PastLaunch;

/// Which launches are made after all.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Backfill {
    /// When they were due, with their job's jitter.
    pub window: Window,
    /// Only those that are recorded as missed, and were not made since.
    pub only_missed: bool,
    /// They are told and not made.
    pub dry_run: bool,
}

/// What came of a backfill.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Backfilled {
    /// These launches are made; in a dry run they would be.
    Launches {
        /// The job's revision that they are launches of; in a dry run that would be it, if nobody else changes the job.
        revision: u32,
        /// The launches, in order of time. Without one, the job stays as it is.
        launches: Vec<PastLaunch>,
        /// Where the window goes on; `None`: those are all of it.
        next_from: Option<DateTime<Utc>>,
    },
    /// An earlier call of the same idempotency key and body made these: as `Launches` told it then. Nothing was made now.
    Before {
        /// The job's revision that they are launches of.
        revision: u32,
        /// The launches, in order of time.
        launches: Vec<PastLaunch>,
        /// Where the window goes on; `None`: those are all of it.
        next_from: Option<DateTime<Utc>>,
    },
    /// The idempotency key came with another body, at this instant. Nothing changed.
    OtherBody(DateTime<Utc>),
    /// The job has another revision than was expected: this one. Nothing changed.
    RevisionIs(u32),
    /// There is no such job.
    Absent,
    /// It is a single row that launches once: it has no run beside that.
    OneTime,
}

impl Jobs {
    /// Makes launches of a job after all, of a new revision that says the same, at the `expected` revision; `None`: at any. They go
    /// through the job's policy as its other runs do, and its pause does not hold them. Its rules for launches that are late do not
    /// count for them: the relevancy window, the window of a run, and what becomes of runs that overlap.
    ///
    /// # Errors
    /// As [`Self::replace`], and [`EngineError::OutOfTime`] when there are too many records to look at. With the revision that is
    /// expected, repeating the call is safe.
    pub fn backfill<'a>(
        &'a self,
        client: &'a ClientId,
        id: &'a JobId,
        backfill: Backfill,
        expected: Option<u32>,
    ) -> BoxFuture<'a, Result<Backfilled, EngineError>> {
        Box::pin(self.make_after_all(client, id, (backfill, expected), None))
    }

    /// The same, by a call with an idempotency key: made again, it is told what the first one made, whatever the job's revision is by
    /// then. A dry run, and a call that finds no launch to make, leave nothing that a later one would find.
    ///
    /// # Errors
    /// As [`Self::backfill`]. Repeating the call is safe.
    pub fn backfill_once<'a>(
        &'a self,
        client: &'a ClientId,
        id: &'a JobId,
        backfill: Backfill,
        expected: Option<u32>,
        call: &'a CallKey,
    ) -> BoxFuture<'a, Result<Backfilled, EngineError>> {
        Box::pin(self.make_after_all(client, id, (backfill, expected), Some(call)))
    }

    async fn make_after_all(
        &self,
        client: &ClientId,
        id: &JobId,
        (backfill, expected): (Backfill, Option<u32>),
        call: Option<&CallKey>,
    ) -> Result<Backfilled, EngineError> {
        let Backfill { window, only_missed, dry_run } = backfill;
        for _ in 0..WRITE_ROUNDS {
            let Some(old) = self.contents.present_job(client, id).await? else {
                return Ok(Backfilled::Absent);
            };
            if id.one_time_shard().is_some() {
                return Ok(Backfilled::OneTime);
            }
            if let Some(call) = call
                && let Some(before) = self.made_before(&old, call).await?
            {
                return Ok(before);
            }
            if let Some(other) = self.other_revision(&old, expected.into()).await? {
                return Ok(Backfilled::RevisionIs(other));
            }
            let past = self.queries.past_launches(&old, window, only_missed).await?;
            let (launches, next_from) = (past.launches, past.next_from);
            if launches.is_empty() {
                return Ok(Backfilled::Launches { revision: old.revision, launches, next_from });
            }
            let revision = old.revision.saturating_add(1);
            if dry_run {
                return Ok(Backfilled::Launches { revision, launches, next_from });
            }
            let next = self.new_job(client, id.clone(), revision, JobDraft::of(&old));
            let (paused, paused_because) = (old.paused, old.paused_because.clone());
            let mut job = Job { paused, paused_because, ..next };
            let owed = owed_of(&job, &launches);
            let made = call.map(|call| MadeLaunches {
                call: call.clone(),
                revision,
                launches: launches.iter().map(|past| (past.launch_at, past.missed.clone())).collect(),
                next_from,
                at: job.changed_at,
            });
            let beside = Beside { owed: &owed, made: made.as_ref() };
            let seen = JobRow::Live(old);
            let written = self.write_in_step(&mut job, Some(&seen), beside, What::Backfilled).await?;
            if written == Write::Done {
                self.publish_owed(&job, &owed).await;
                return Ok(Backfilled::Launches { revision, launches, next_from });
            }
        }
        Err(EngineError::Contended { what: "a job", rounds: WRITE_ROUNDS })
    }

    /// What the same call made of a job that is there. What it left undone is done first: the launches themselves are owed, and of a
    /// later revision nothing is left.
    async fn made_before(&self, job: &Job, call: &CallKey) -> Result<Option<Backfilled>, EngineError> {
        let Some(made) = self.store.made_launches(&job.client, &job.id, &call.key).await? else {
            return Ok(None);
        };
        let MadeLaunches { revision, launches, next_from, at, .. } = made;
        if made.call.said != call.said {
            return Ok(Some(Backfilled::OtherBody(at)));
        }
        if job.revision == revision {
            self.finish_change(job).await?;
        }
        let past = |(launch_at, missed)| PastLaunch { launch_at, missed };
        let launches = launches.into_iter().map(past).collect();
        Ok(Some(Backfilled::Before { revision, launches, next_from }))
    }

    /// They are owed: whatever fails now, the next tick pays it.
    async fn publish_owed(&self, job: &Job, owed: &[OutboxEntry]) {
        for owed in owed {
            if let Err(error) = self.emission.publish(owed, false, Emitter::Master).await {
                warn!(%error, job = %job.id, "launches that are made after all are left to the next tick");
                return;
            }
        }
    }
}

fn owed_of(job: &Job, launches: &[PastLaunch]) -> Vec<OutboxEntry> {
    let flow = Flow { window: None, overlap: Overlap::Allow, ..job.terms.flow.clone() };
    let late = Job { terms: Terms { relevancy: None, flow, ..job.terms.clone() }, ..job.clone() };
    let owed = |some: &[PastLaunch]| {
        let instants = Instants::new(some.iter().map(|launch| launch.launch_at)).ok()?;
        owed_at(&late, Part::Backfilled, instants, job.changed_at)
    };
    launches.chunks(AT_INSTANTS).filter_map(owed).collect()
}
