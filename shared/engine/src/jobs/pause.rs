//! Pausing jobs: while one is paused, its launches are recorded as skipped.

use futures::future::BoxFuture;
use tidegate_domain::change::What;
use tidegate_domain::ids::{ClientId, JobId};
use tidegate_domain::job::Job;
use tidegate_domain::limits::WRITE_ROUNDS;
use tidegate_store::Write;
use tidegate_store::jobs::JobRow;

use super::{Beside, JobDraft, Jobs};
use crate::{EngineError, Written, author};

impl Jobs {
    /// Pauses a job, or lets it go on, at the `expected` revision; `None`: at any. Acts on everything that is not
    /// delivered yet and due after the call; what waits in its policy's line since before stays there.
    ///
    /// # Errors
    /// [`EngineError::Store`] when DynamoDB refuses a call or does not answer, or a row that is needed cannot be read;
    /// `Queue` and `ScanQueue` when our queues do not take the launches that are due; `Contended` when the job or a
    /// policy was changed by others in each of `WRITE_ROUNDS` rounds; `Panicked` when this version failed at one of its
    /// launches. Repeating the call is safe.
    pub fn pause<'a>(
        &'a self,
        client: &'a ClientId,
        id: &'a JobId,
        paused: bool,
        expected: Option<u32>,
    ) -> BoxFuture<'a, Result<Written<Job>, EngineError>> {
        Box::pin(self.set_paused(client, id, (paused, None), expected))
    }

    /// Pauses a job as [`Self::pause`] does, for a reason that is kept with it while it is paused. One that is paused already has
    /// the new reason.
    ///
    /// # Errors
    /// As [`Self::pause`].
    pub fn pause_because<'a>(
        &'a self,
        client: &'a ClientId,
        id: &'a JobId,
        because: &'a str,
        expected: Option<u32>,
    ) -> BoxFuture<'a, Result<Written<Job>, EngineError>> {
        Box::pin(self.set_paused(client, id, (true, Some(because)), expected))
    }

    async fn set_paused(
        &self,
        client: &ClientId,
        id: &JobId,
        (paused, because): (bool, Option<&str>),
        expected: Option<u32>,
    ) -> Result<Written<Job>, EngineError> {
        let what = if paused { What::Paused } else { What::Resumed };
        for _ in 0..WRITE_ROUNDS {
            let Some(old) = self.contents.present_job(client, id).await? else {
                return Ok(Written::Absent);
            };
            if let Some(other) = self.other_revision(&old, expected.into()).await? {
                return Ok(Written::RevisionIs(other));
            }
            let is_said = because.is_none_or(|because| old.paused_because.as_deref() == Some(because));
            if old.paused == paused && is_said {
                self.finish_change(&old).await?;
                return Ok(Written::Unchanged(old));
            }
            let next = self.new_job(client, id.clone(), old.revision + 1, JobDraft::of(&old));
            let mut job = Job { paused, paused_because: because.map(str::to_owned), ..next };
            let written = match id.one_time_shard() {
                Some(_) => self.replace_one_time(&job, &old, what).await?,
                None => {
                    self.write_in_step(&mut job, Some(&JobRow::Live(old)), Beside::default(), what).await?
                }
            };
            if written == Write::Done {
                return Ok(Written::Replaced(job));
            }
        }
        Err(EngineError::Contended { what: "a job", rounds: WRITE_ROUNDS })
    }

    async fn replace_one_time(&self, job: &Job, old: &Job, what: What) -> Result<Write, EngineError> {
        self.contents.mark_dirty(&job.client).await?;
        self.emit_what_is_behind(old, job.changed_at).await?;
        self.tokens.recheck_packs(old).await?;
        let outbox = super::outbox_of(job, Some(old));
        let change = author::change(what, job.changed_at);
        let written = self.store.replace_one_time(job, old, outbox.as_ref(), &change).await?;
        if written == Write::Done {
            self.stop_waiting_runs(job, &job.id, Some(job)).await?;
            self.emit_first(job, outbox.as_ref()).await?;
        }
        Ok(written)
    }
}
