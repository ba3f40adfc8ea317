//! The versions of a job: what it says, and what it said before each change that is recorded, back to the first that is kept.
//!
//! A change names what was there before, with the revision and the instant that the change before that is found by. So each
//! version further back is a read.

use chrono::{DateTime, Utc};
use futures::future::BoxFuture;
use tidegate_domain::ids::{ClientId, JobId};
use tidegate_domain::job::Job;
use tidegate_domain::limits::{VERSIONS_SEARCHED, VERSIONS_TOLD};
use tidegate_store::changes::ChangeRow;
use tidegate_store::jobs::JobRow;
use tidegate_store::{Page, PageOf};

use super::Queries;
use crate::EngineError;

/// A version of a job.
#[derive(Debug, Clone, PartialEq)]
pub struct JobVersion {
    /// Its revision.
    pub revision: u32,
    /// When it was written, to the millisecond.
    pub changed_at: DateTime<Utc>,
    /// What it says; `None`: it is the deletion of the job.
    pub job: Option<Job>,
    /// What is recorded of the change that made it; `None`: nothing was, or is kept.
    pub change: Option<ChangeRow>,
}

impl Queries {
    /// A page of the versions of a job, the latest first: at most [`VERSIONS_TOLD`]. `None`: there is no such job, and what is left
    /// of one that was deleted is gone. The `next` of a page names a change.
    ///
    /// # Errors
    /// [`EngineError::Store`] when DynamoDB refuses a call or does not answer, or a version cannot be read.
    pub fn versions<'a>(
        &'a self,
        client: &'a ClientId,
        id: &'a JobId,
        asked: PageOf,
    ) -> BoxFuture<'a, Result<Option<Page<JobVersion>>, EngineError>> {
        Box::pin(async move {
            let mut next = match &asked.after {
                None => match self.latest(client, id).await? {
                    None => return Ok(None),
                    latest => latest,
                },
                Some(after) => before(self.store.change_at(client, after).await?.as_ref())?,
            };
            let mut page = Page::new(Vec::new(), None);
            let most = usize::from(asked.rows.get().min(VERSIONS_TOLD));
            while let Some(row) = next.take().filter(|_| page.rows.len() < most) {
                let change = self.store.job_change(client, id, &row).await?;
                next = before(change.as_ref())?;
                page.next = change.as_ref().filter(|_| next.is_some()).map(|change| change.sort_key.clone());
                page.rows.push(version(row, change));
            }
            Ok(Some(page))
        })
    }

    /// A version of a job by its revision; `None`: there is no such job, or the version is not kept, or lies more than
    /// [`VERSIONS_SEARCHED`] versions back.
    ///
    /// # Errors
    /// As [`Self::versions`].
    pub fn version<'a>(
        &'a self,
        client: &'a ClientId,
        id: &'a JobId,
        revision: u32,
    ) -> BoxFuture<'a, Result<Option<JobVersion>, EngineError>> {
        Box::pin(async move {
            let mut next = self.latest(client, id).await?;
            for _ in 0..VERSIONS_SEARCHED {
                let Some(row) = next.take().filter(|row| row.revision() >= revision) else { return Ok(None) };
                let change = self.store.job_change(client, id, &row).await?;
                if row.revision() == revision {
                    return Ok(Some(version(row, change)));
                }
                next = before(change.as_ref())?;
            }
            Ok(None)
        })
    }

    /// What lies under the id of a job now, whatever table it lies in.
    async fn latest(&self, client: &ClientId, id: &JobId) -> Result<Option<JobRow>, EngineError> {
        match id.one_time_shard() {
            Some(_) => Ok(self.store.one_time(client, id).await?.map(JobRow::Live)),
            None => Ok(self.store.job(client, id).await?),
        }
    }
}

/// What lay under the id of a job before a change of it.
fn before(change: Option<&ChangeRow>) -> Result<Option<JobRow>, EngineError> {
    match change {
        Some(change) => Ok(change.job_before()?),
        None => Ok(None),
    }
}

fn version(row: JobRow, change: Option<ChangeRow>) -> JobVersion {
    let (revision, changed_at) = (row.revision(), row.changed_at());
    let job = match row {
        JobRow::Live(job) => Some(job),
        JobRow::Deleted { .. } => None,
    };
    JobVersion { revision, changed_at, job, change }
}
