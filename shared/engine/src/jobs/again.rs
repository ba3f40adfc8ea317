//! Calls that are made again: changes that expect the revision before the one that is there, and jobs that are created where there is
//! one already, for clients whose quotas bound how many they may have.

use futures::future::BoxFuture;
use futures::stream::{self, StreamExt};
use tidegate_domain::ids::{ClientId, JobId};
use tidegate_domain::job::Job;
use tidegate_store::jobs::JobRow;

use super::bulk::WRITES_AT_ONCE;
use super::{JobDraft, Jobs, keep_what_was_left_open, same_content};
use crate::{EngineError, Expect, Written, deadline};

impl Jobs {
    /// The revision of a job that is there, where another was `expected`; `None`: it is what was expected. Every change of a job asks
    /// this before it does anything.
    ///
    /// Where it is the revision after the expected one, the same call may have written it, and died or lost its answer before it had
    /// done all that follows from the change. That is done first, whoever wrote it: the call that is refused is the only one that
    /// still comes for it.
    ///
    /// # Errors
    /// [`EngineError::Store`] when DynamoDB refuses a call or does not answer, or a row that is needed cannot be read;
    /// `Queue` and `ScanQueue` when our queues do not take the launches that are due. Repeating the call is safe.
    pub fn other_revision<'a>(
        &'a self,
        there: &'a Job,
        expected: Expect,
    ) -> BoxFuture<'a, Result<Option<u32>, EngineError>> {
        Box::pin(async move {
            let Expect::Revision(expected) = expected else { return Ok(None) };
            if expected == there.revision {
                return Ok(None);
            }
            if expected.saturating_add(1) == there.revision {
                self.finish_change(there).await?;
            }
            Ok(Some(there.revision))
        })
    }

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
