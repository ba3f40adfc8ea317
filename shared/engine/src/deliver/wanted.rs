//! Whether an event is still wanted: its job may have been paused, deleted or changed since its launch was planned.

use tidegate_domain::calendar::OpenDays;
use tidegate_domain::ids::{ClientId, JobId};
use tidegate_domain::job::Job;
use tidegate_domain::occurrence::{Occurrence, SkipReason};
use tidegate_domain::time::shifted;

use super::Delivery;
use crate::EngineError;

/// A job as it is now, with the days on which its calendars let it launch.
pub(super) struct Known {
    job: Option<Job>,
    days: OpenDays,
}

impl Delivery {
    pub(super) async fn known(&self, client: &ClientId, id: &JobId) -> Result<Known, EngineError> {
        let job = self.contents.present_job(client, id).await?;
        let days = match &job {
            Some(job) => self.contents.open_days(client, &job.rules).await?,
            None => OpenDays::default(),
        };
        Ok(Known { job, days })
    }

    /// Why a single event of a pack is not delivered, by what is stored now; `None` when it is wanted.
    pub(super) async fn single_unwanted_because(
        &self,
        member: &Occurrence,
    ) -> Result<Option<String>, EngineError> {
        let row = self.store.run(&member.client, &member.run_id()).await?;
        if let Some(reason) = row.and_then(|row| row.stopped) {
            return Ok(Some(reason));
        }
        let known = self.known(&member.client, &member.job).await?;
        Ok(unwanted_because(member, &known).map(|reason| reason.as_str().to_owned()))
    }
}

/// Why an occurrence is not delivered any more.
///
/// What was due before a change is delivered as it was; what was due after follows the changed job. Due is what the
/// trigger says: a change while jitter holds a launch back comes after it.
pub(super) fn unwanted_because(occurrence: &Occurrence, known: &Known) -> Option<SkipReason> {
    let Some(job) = &known.job else { return Some(SkipReason::JobDeleted) };
    let scheduled_at = shifted(occurrence.launch_at, -job.rules.jitter.offset(&job.client, &job.id));
    if job.revision > occurrence.revision && scheduled_at > job.changed_at {
        return Some(if job.paused { SkipReason::Paused } else { SkipReason::Rescheduled });
    }
    known.days.refuses(scheduled_at, job.trigger.zone())
}
