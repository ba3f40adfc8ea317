//! Many jobs in one call.

use serde::Serialize;
use serde_json::{Value, json};
use tidegate_protocol::{BulkResult, BulkResults, JobList, JobView, SelectedJobs};

use crate::client::{Client, Page, Route};
use crate::error::Error;
use crate::job::{Job, Named};

/// Jobs that are meant by what they have in common: those that fit all that is given.
///
/// ```
/// use tidegate_client::Selection;
///
/// let mine = Selection { policy_id: Some("reports".to_owned()), dry_run: true, ..Selection::of_prefix("nightly-") };
/// assert_eq!(serde_json::to_value(mine).unwrap()["prefix"], "nightly-");
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct Selection {
    /// What their names begin with; an empty text for any.
    pub prefix: String,
    /// The policy that they are under; any when `None`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub policy_id: Option<String>,
    /// Whether they are paused; either when `None`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub paused: Option<bool>,
    /// Where they send their events: a URL or an ARN, with at most one `*`; anywhere when `None`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub target: Option<String>,
    /// A tag that they have; any when `None`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tag: Option<String>,
    /// Why they are paused: at most 200 bytes. Only where they are to be paused.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub because: Option<String>,
    /// That a launch of theirs that will be made is due before this RFC 3339 instant; any when `None`. Only where they are listed.
    #[serde(skip)]
    pub next_before: Option<String>,
    /// Only tells which jobs are meant. Not looked at where they are listed.
    pub dry_run: bool,
    /// The `next_cursor` of the call before; the first page when `None`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cursor: Option<String>,
}

impl Selection {
    /// The jobs whose names begin so.
    pub fn of_prefix(prefix: impl Into<String>) -> Self {
        Self { prefix: prefix.into(), ..Self::default() }
    }
}

impl Client {
    /// A page of the jobs that are meant, by name: of the next 1,000 whose names begin so. It may have few rows, or none: the list
    /// ends where `next_cursor` is `None`.
    ///
    /// # Errors
    /// [`Error::Refused`] with status 400 when a part of it is wrong or the cursor is not one of this list. Otherwise as every call
    /// of [`Client`].
    pub async fn selected_jobs(&self, selection: &Selection) -> Result<Page<JobView>, Error> {
        let Selection { prefix, policy_id, paused, target, tag, next_before, .. } = selection;
        let mut some = vec![("prefix", &**prefix)];
        some.extend(policy_id.as_deref().map(|policy| ("policy_id", policy)));
        some.extend(paused.map(|paused| ("paused", if paused { "true" } else { "false" })));
        some.extend(target.as_deref().map(|target| ("target", target)));
        some.extend(tag.as_deref().map(|tag| ("tag", tag)));
        some.extend(next_before.as_deref().map(|before| ("next_before", before)));
        let page: JobList = self.get_page(Route::Jobs, &some, selection.cursor.as_deref()).await?;
        Ok(Page { rows: page.jobs, unreadable: page.unreadable, next_cursor: page.next_cursor })
    }

    /// A page of the jobs whose names begin with `prefix`. Others are not read.
    ///
    /// # Errors
    /// As [`Client::jobs`].
    pub async fn jobs_that_begin_with(
        &self,
        prefix: &str,
        cursor: Option<&str>,
    ) -> Result<Page<JobView>, Error> {
        let cursor = cursor.map(str::to_owned);
        self.selected_jobs(&Selection { cursor, ..Selection::of_prefix(prefix) }).await
    }

    /// A page of the one-time jobs with generated ids that are due from `since` up to, not including, `until`, two RFC 3339 instants up to
    /// an hour apart, by instant; the first page when `cursor` is `None`. Up to ten minutes are looked at for it: it may have few rows, or
    /// none. The list ends where `next_cursor` is `None`.
    ///
    /// # Errors
    /// [`Error::Refused`] with status 400 when an instant is wrong or the cursor is not one of this list. Otherwise as every call of
    /// [`Client`].
    pub async fn one_time_jobs(
        &self,
        since: &str,
        until: &str,
        cursor: Option<&str>,
    ) -> Result<Page<JobView>, Error> {
        let page: JobList =
            self.get_page(Route::OneTimeJobs, &[("since", since), ("until", until)], cursor).await?;
        Ok(Page { rows: page.jobs, unreadable: page.unreadable, next_cursor: page.next_cursor })
    }

    /// Pauses the jobs that are meant, of the next 100 whose names begin so; those after them with the answer's `next_cursor`.
    /// Repeating it is safe.
    ///
    /// # Errors
    /// [`Error::Refused`] with status 422 when a part of it is wrong, 400 when the cursor is not one of this list. Otherwise as
    /// every call of [`Client`]; some jobs may be paused then.
    pub async fn pause_jobs(&self, selection: &Selection) -> Result<SelectedJobs, Error> {
        self.post(Route::PauseJobs, selection).await
    }

    /// Resumes the jobs that are meant, as [`Client::pause_jobs`] pauses them.
    ///
    /// # Errors
    /// As [`Client::pause_jobs`].
    pub async fn resume_jobs(&self, selection: &Selection) -> Result<SelectedJobs, Error> {
        self.post(Route::ResumeJobs, selection).await
    }

    /// Deletes the jobs that are meant, as [`Client::pause_jobs`] pauses them. What they have waiting is cancelled.
    ///
    /// # Errors
    /// As [`Client::pause_jobs`].
    pub async fn delete_jobs(&self, selection: &Selection) -> Result<SelectedJobs, Error> {
        self.post(Route::DeleteJobs, selection).await
    }

    /// Creates up to 1,000 jobs, each with or without a name. The answer has one entry for each, in the same order; a
    /// job that is refused spoils no other.
    ///
    /// # Errors
    /// [`Error::Refused`] with status 413 when the body is over 4 MiB, 422 when there are no jobs or too many.
    /// Otherwise as every call of [`Client`]; some jobs may be created then.
    pub async fn create_jobs(&self, jobs: &[(Option<&str>, Job)]) -> Result<Vec<BulkResult>, Error> {
        let answer: BulkResults = self.post(Route::Bulk, &body_of(jobs)).await?;
        Ok(answer.results)
    }

    /// The same, and those without a name get one that follows from the key (1 to 255 visible ASCII characters, such as a UUID)
    /// and their place: repeating it, in the same order, is safe.
    ///
    /// # Errors
    /// As [`Self::create_jobs`], and status 400 when the key is none.
    pub async fn create_jobs_once(
        &self,
        idempotency_key: &str,
        jobs: &[(Option<&str>, Job)],
    ) -> Result<Vec<BulkResult>, Error> {
        let answer: BulkResults = self.post_once(Route::Bulk, &body_of(jobs), idempotency_key).await?;
        Ok(answer.results)
    }
}

fn body_of(jobs: &[(Option<&str>, Job)]) -> Value {
    let jobs: Vec<Named<'_>> = jobs.iter().map(|(job_id, body)| Named { job_id: *job_id, body }).collect();
    json!({ "jobs": jobs })
}
