//! Deleting jobs, and stopping what they have waiting.

use futures::future::BoxFuture;
use futures::stream::{self, StreamExt, TryStreamExt};
use tidegate_domain::change::What;
use tidegate_domain::ids::{ClientId, JobId};
use tidegate_domain::job::Job;
use tidegate_domain::limits::WRITE_ROUNDS;
use tidegate_domain::occurrence::SkipReason;
use tidegate_domain::policy::PolicyRef;
use tidegate_store::Write;

use super::JobDelete;
use super::Jobs;
use crate::EngineError;
use crate::author;
use crate::effect::{Effect, WaitingRun};

/// Runs that are stopped at once.
const RUNS_AT_ONCE: usize = 8;

impl Jobs {
    /// Deletes a job at the `expected` revision; `None`: at any. What it has waiting is cancelled; what is in flight
    /// keeps its tokens until they are released.
    ///
    /// # Errors
    /// [`EngineError::Store`] when DynamoDB refuses a call or does not answer, or a row that is needed cannot be read;
    /// `Queue` and `ScanQueue` when our queues do not take the launches that are due; `Contended` when the job or a
    /// policy was changed by others in each of `WRITE_ROUNDS` rounds; `Panicked` when this version failed at one of its
    /// launches. Repeating the call is safe.
    pub fn delete<'a>(
        &'a self,
        client: &'a ClientId,
        id: &'a JobId,
        expected: Option<u32>,
    ) -> BoxFuture<'a, Result<JobDelete, EngineError>> {
        Box::pin(async move {
            for _ in 0..WRITE_ROUNDS {
                let one_time = id.one_time_shard().is_some();
                let Some(job) = self.contents.present_job(client, id).await? else {
                    return Ok(JobDelete::Absent);
                };
                if let Some(other) = self.other_revision(&job, expected.into()).await? {
                    return Ok(JobDelete::RevisionIs(other));
                }
                self.contents.mark_dirty(client).await?;
                let deleted_at = self.clock.now();
                self.emit_what_is_behind(&job, deleted_at).await?;
                self.tokens.recheck_packs(&job).await?;
                // Before the deletion: whoever repeats a call that died in between still finds the job.
                self.stop_waiting_runs(&job, id, None).await?;
                let change = author::change(What::Deleted, deleted_at);
                let deleted = match one_time {
                    true => self.store.delete_one_time(&job, &change).await.map(|()| Write::Done)?,
                    false => self.store.delete_job(&job, &change).await?,
                };
                if deleted == Write::Done {
                    self.stop_waiting_runs(&job, id, None).await?;
                    return Ok(JobDelete::Done);
                }
            }
            Err(EngineError::Contended { what: "a job", rounds: WRITE_ROUNDS })
        })
    }

    /// Stops what waits of a job: everything when it goes, what is due after the change when it is replaced.
    pub(super) async fn stop_waiting_runs(
        &self,
        job: &Job,
        id: &JobId,
        replaced_by: Option<&Job>,
    ) -> Result<(), EngineError> {
        if replaced_by.is_none() {
            self.throttle.stop_waiting_singles(job, SkipReason::JobDeleted.as_str()).await?;
        }
        let mut stops = Vec::new();
        let recent = self.store.runs(&job.client, id, None).await?;
        for run in recent.rows {
            let Some(policy) = &run.terms.policy else { continue };
            let superseded = match replaced_by {
                None => true,
                Some(new) => run.id.revision() < new.revision && run.id.launch_at() > new.changed_at,
            };
            // Whoever stopped one that has not ended may have died before its rest was out of the line.
            if !superseded || run.has_ended() {
                continue;
            }
            let reason = if replaced_by.is_some() { SkipReason::Rescheduled } else { SkipReason::JobDeleted };
            let (policy, rank) = (PolicyRef::new(&job.client, policy), run.terms.flow.rank());
            let waiting = WaitingRun { policy, run: run.id, rank };
            stops.push(self.effects.carry_out(vec![Effect::Stop(waiting, reason.as_str())]));
        }
        let stopped: Vec<_> = stream::iter(stops).buffer_unordered(RUNS_AT_ONCE).try_collect().await?;
        drop(stopped);
        Ok(())
    }
}
