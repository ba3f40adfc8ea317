//! Many jobs in one call.

use serde::Deserialize;
use serde_json::json;

use crate::client::{Client, Route};
use crate::error::{Error, FieldError};
use crate::job::{Job, Named};

/// What came of one job of a bulk call.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct BulkResult {
    /// The HTTP status that the job would have been answered with alone: 201 created, 200 there already, or from 400 on
    /// a refusal.
    pub status: u16,
    /// The job's name, when it is there now; `None` when it was refused.
    pub job_id: Option<String>,
    /// The job's revision, when it is there now; `None` when it was refused.
    pub revision: Option<u32>,
    /// Sentences about what may not be as meant, though it was taken.
    #[serde(default)]
    pub warnings: Vec<String>,
    /// What is wrong and what to do about it; `None` unless it was refused.
    pub detail: Option<String>,
    /// Each field that is wrong; empty unless it was refused for its fields.
    #[serde(default)]
    pub errors: Vec<FieldError>,
}

#[derive(Deserialize)]
struct BulkResults {
    results: Vec<BulkResult>,
}

impl Client {
    /// Creates up to 1,000 jobs, each with or without a name. The answer has one entry for each, in the same order; a
    /// job that is refused spoils no other.
    ///
    /// # Errors
    /// [`Error::Refused`] with status 413 when the body is over 4 MiB, 422 when there are no jobs or too many.
    /// Otherwise as every call of [`Client`]; some jobs may be created then.
    pub async fn create_jobs(&self, jobs: &[(Option<&str>, Job)]) -> Result<Vec<BulkResult>, Error> {
        let jobs: Vec<Named<'_>> =
            jobs.iter().map(|(job_id, body)| Named { job_id: *job_id, body }).collect();
        let answer: BulkResults = self.post(Route::Bulk, &json!({ "jobs": jobs })).await?;
        Ok(answer.results)
    }
}
