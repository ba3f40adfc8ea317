//! Many jobs in one call.

use serde_json::json;
use tidegate_protocol::{BulkResult, BulkResults};

use crate::client::{Client, Route};
use crate::error::Error;
use crate::job::{Job, Named};

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
