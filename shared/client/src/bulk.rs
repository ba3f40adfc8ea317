//! Many jobs in one call.

use serde_json::{Value, json};
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
