//! Leaving out a launch of a job: it is recorded with its reason, and those after it are made.

use chrono::{DateTime, Utc};
use futures::future::BoxFuture;
use tidegate_domain::change::What;
use tidegate_domain::ids::{ClientId, JobId};
use tidegate_domain::job::Job;
use tidegate_domain::limits::{UPCOMING_FIRINGS, WRITE_ROUNDS};
use tidegate_domain::time::{seconds, shifted};

use super::{JobDraft, Jobs};
use crate::{EngineError, Expect, Written};

/// What came of leaving out a launch of a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LeftOut {
    /// The job leaves out a launch.
    Launch {
        /// The job's revision that leaves it out.
        revision: u32,
        /// When it would have been due, with its jitter.
        launch_at: DateTime<Utc>,
    },
    /// The job has another revision than was expected: this one. Nothing changed.
    RevisionIs(u32),
    /// There is no such job.
    Absent,
    /// It is a single row that launches once: to leave that out is to delete it.
    OneTime,
    /// It does not launch then, or never again.
    NoLaunch,
    /// As many launches that are to come are left out as a job may leave out.
    TooMany,
}

impl Jobs {
    /// Leaves out a launch of a job that is to come: that at `launch_at`, with its jitter, or, when `None`, the next that is
    /// made. To leave out one again changes nothing; without an instant each call leaves out another. The job has a new
    /// revision then, of the `expected` one when that is given.
    ///
    /// # Errors
    /// As [`Self::replace`]. Repeating the call is safe where it names its launch or the expected revision.
    pub fn skip<'a>(
        &'a self,
        client: &'a ClientId,
        id: &'a JobId,
        launch_at: Option<DateTime<Utc>>,
        expected: Option<u32>,
    ) -> BoxFuture<'a, Result<LeftOut, EngineError>> {
        Box::pin(async move {
            for _ in 0..WRITE_ROUNDS {
                let Some(job) = self.contents.present_job(client, id).await? else {
                    return Ok(LeftOut::Absent);
                };
                if id.one_time_shard().is_some() {
                    return Ok(LeftOut::OneTime);
                }
                if let Some(other) = self.other_revision(&job, expected.into()).await? {
                    return Ok(LeftOut::RevisionIs(other));
                }
                let Some(launch_at) = self.launch_to_come(&job, launch_at).await? else {
                    return Ok(LeftOut::NoLaunch);
                };
                // The rules say it as the trigger does.
                let scheduled_at = shifted(launch_at, -job.rules.jitter.offset(client, id));
                let Ok(rules) = job.rules.clone().skipping(scheduled_at, self.clock.now()) else {
                    return Ok(LeftOut::TooMany);
                };
                let draft = JobDraft { rules, ..JobDraft::of(&job) };
                let seen = Expect::Revision(job.revision);
                match self.put(client, id.clone(), draft, seen, What::LaunchSkipped).await? {
                    Written::Created(job) | Written::Replaced(job) | Written::Unchanged(job) => {
                        return Ok(LeftOut::Launch { revision: job.revision, launch_at });
                    }
                    // Changed or deleted since it was read.
                    Written::RevisionIs(_) | Written::Absent | Written::Taken(_) => {}
                }
            }
            Err(EngineError::Contended { what: "a job", rounds: WRITE_ROUNDS })
        })
    }

    /// The launch at an instant, if it is one that is to come, or the next that is made.
    async fn launch_to_come(
        &self,
        job: &Job,
        launch_at: Option<DateTime<Utc>>,
    ) -> Result<Option<DateTime<Utc>>, EngineError> {
        let now = self.clock.now();
        let (after, count) = match launch_at {
            Some(at) if at <= now => return Ok(None),
            Some(at) => (shifted(at, seconds(-1)), 1),
            None => (now, UPCOMING_FIRINGS as usize),
        };
        let launches = self.queries.upcoming(job, after, count).await?;
        let found = launches.into_iter().find(|launch| match launch_at {
            Some(at) => launch.launch_at == at,
            None => launch.skip_reason.is_none(),
        });
        Ok(found.map(|launch| launch.launch_at))
    }
}
