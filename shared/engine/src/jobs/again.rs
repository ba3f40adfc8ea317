//! Jobs that are created again, where there is one already: for clients whose quotas bound how many they may have.

use futures::future::BoxFuture;
use futures::stream::{self, StreamExt};
use tidegate_domain::ids::{ClientId, JobId};
use tidegate_domain::job::Job;
use tidegate_store::jobs::JobRow;

use super::bulk::WRITES_AT_ONCE;
use super::{JobDraft, Jobs, keep_what_was_left_open, same_content};
use crate::{EngineError, Written, deadline};

impl Jobs {
    /// What a call that creates a job is told where there is one under its id: `Unchanged` where that says the same, otherwise `Taken`;
    /// `Absent` when it is there no more. Never creates: nothing was taken of a quota for it.
    ///
    /// # Errors
    /// As [`Self::create`].
    pub fn create_again<'a>(
        &'a self,
        client: &'a ClientId,
        id: &'a JobId,
        draft: JobDraft,
    ) -> BoxFuture<'a, Result<Written<Job>, EngineError>> {
        Box::pin(async move {
            let Some(JobRow::Live(there)) = self.store.job(client, id).await? else {
                return Ok(Written::Absent);
            };
            let mut job = self.new_job(client, id.clone(), there.revision, draft);
            keep_what_was_left_open(&there, &mut job);
            if !same_content(&there, &job) {
                return Ok(Written::Taken(there));
            }
            self.finish_change(&there).await?;
            Ok(Written::Unchanged(there))
        })
    }

    /// The same for many, with the answers in the order of the jobs.
    pub fn create_all_again<'a>(
        &'a self,
        client: &'a ClientId,
        drafts: Vec<(JobId, JobDraft)>,
    ) -> BoxFuture<'a, Vec<Result<Written<Job>, EngineError>>> {
        Box::pin(async move {
            let all: Vec<_> = drafts
                .into_iter()
                .map(|(id, draft)| async move {
                    deadline::check(&*self.clock)?;
                    self.create_again(client, &id, draft).await
                })
                .collect();
            stream::iter(all).buffered(WRITES_AT_ONCE).collect().await
        })
    }
}
