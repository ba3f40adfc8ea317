//! What was changed and by whom, and the versions of a job.

use tidegate_protocol::{Change, ChangeList, JobVersion, JobVersionList, JobView};

use serde_json::json;

use crate::client::{Client, Page, Route};
use crate::error::Error;

/// Changes that are asked for: those that fit all that is given.
///
/// ```
/// use tidegate_client::ChangesWanted;
///
/// let wanted = ChangesWanted::of("job", "nightly");
/// assert_eq!((wanted.kind.as_deref(), wanted.since), (Some("job"), None));
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ChangesWanted {
    /// Those that were made at this RFC 3339 instant or later; all that are kept when `None`.
    pub since: Option<String>,
    /// Those that were made before this RFC 3339 instant; up to now when `None`.
    pub until: Option<String>,
    /// What was changed: `job`, `policy`, `calendar`, `key`, `secret` or `client`; anything when `None`.
    pub kind: Option<String>,
    /// The name of what was changed; any when `None`.
    pub id: Option<String>,
}

impl ChangesWanted {
    /// All that are kept of one thing.
    pub fn of(kind: impl Into<String>, id: impl Into<String>) -> Self {
        Self { kind: Some(kind.into()), id: Some(id.into()), ..Self::default() }
    }
}

impl Client {
    /// A page of what was changed of this client's, the latest first; the first page when `cursor` is `None`. Of one thing up to
    /// 1,000 changes are looked at for a page: it may have few rows, or none. The list ends where `next_cursor` is `None`.
    ///
    /// # Errors
    /// [`Error::Refused`] with status 400 when a part of it is wrong or the cursor is not one of this list. Otherwise as every call
    /// of [`Client`].
    pub async fn changes(&self, wanted: &ChangesWanted, cursor: Option<&str>) -> Result<Page<Change>, Error> {
        let ChangesWanted { since, until, kind, id } = wanted;
        let said = [("since", since), ("until", until), ("kind", kind), ("id", id)];
        let some: Vec<_> = said.iter().filter_map(|(name, value)| Some((*name, value.as_deref()?))).collect();
        let list: ChangeList = self.get_page(Route::Changes, &some, cursor).await?;
        Ok(Page { rows: list.changes, unreadable: list.unreadable, next_cursor: list.next_cursor })
    }

    /// A page of the versions of a job, up to 25, the latest first; the first page when `cursor` is `None`.
    ///
    /// # Errors
    /// [`Error::Refused`] with status 404 when there is no such job, and nothing is left of one that was deleted, 400 when the cursor
    /// is not one of this list. Otherwise as every call of [`Client`].
    pub async fn versions(&self, job_id: &str, cursor: Option<&str>) -> Result<Page<JobVersion>, Error> {
        let list: JobVersionList = self.get_page(Route::Versions(job_id), &[], cursor).await?;
        Ok(Page { rows: list.versions, unreadable: Vec::new(), next_cursor: list.next_cursor })
    }

    /// A version of a job, by its revision.
    ///
    /// # Errors
    /// [`Error::Refused`] with status 404 when it is not kept. Otherwise as every call of [`Client`].
    pub async fn version(&self, job_id: &str, revision: u32) -> Result<JobVersion, Error> {
        self.get(Route::Version(job_id, &revision.to_string())).await
    }

    /// Makes a job say again what it said at a revision, under a new revision; one that is paused stays so, and one that was deleted
    /// comes back. With `expected`, only at that revision. Repeating it is safe.
    ///
    /// # Errors
    /// [`Error::Refused`] with status 404 when that version is not kept, 412 when the job is at another revision, 403 when a target is
    /// not on the client's allow-list any more, 422 when a field of that version is not right any more, such as a policy that is
    /// gone. Otherwise as every call of [`Client`].
    pub async fn roll_back_job(
        &self,
        job_id: &str,
        revision: u32,
        expected: Option<u32>,
    ) -> Result<JobView, Error> {
        self.act_with(Route::RollBack(job_id), &json!({"revision": revision}), expected).await
    }
}
