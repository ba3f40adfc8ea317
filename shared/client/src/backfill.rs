//! Launches of a job that are made after all.

use serde::Serialize;
use tidegate_protocol::LaunchBackfill;

use crate::client::{Client, Route};
use crate::error::Error;

/// Launches that are to be made after all: those that were due in a window.
///
/// ```
/// use tidegate_client::Backfill;
///
/// let night = Backfill::missed("2026-12-24T22:00:00Z", "2026-12-25T06:00:00Z");
/// assert!(night.only_missed && !night.dry_run);
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Backfill {
    /// Those that were due at this RFC 3339 instant or later; at most 366 days ago.
    pub since: String,
    /// Those that were due before this RFC 3339 instant, which is not ahead.
    pub until: String,
    /// Only those that are recorded as missed and were not made since.
    pub only_missed: bool,
    /// Only tells which launches are meant.
    pub dry_run: bool,
}

impl Backfill {
    /// All launches of a window.
    pub fn all(since: impl Into<String>, until: impl Into<String>) -> Self {
        Self { since: since.into(), until: until.into(), only_missed: false, dry_run: false }
    }

    /// The launches of a window that were missed.
    pub fn missed(since: impl Into<String>, until: impl Into<String>) -> Self {
        Self { only_missed: true, ..Self::all(since, until) }
    }
}

impl Client {
    /// Makes launches of a job after all, up to 480: go on at the `next_since` of the answer. With `expected`, only at that
    /// revision, and repeating it is safe.
    ///
    /// # Errors
    /// [`Error::Refused`] with status 404 when there is no such job, 409 when it is a one-time job without an id of its own, 412
    /// when it is at another revision, 422 when a field is wrong. Otherwise as every call of [`Client`].
    pub async fn backfill_job(
        &self,
        job_id: &str,
        backfill: &Backfill,
        expected: Option<u32>,
    ) -> Result<LaunchBackfill, Error> {
        self.act_with(Route::Backfill(job_id), backfill, expected).await
    }

    /// The same, by an idempotency key: 1 to 255 printable characters without spaces, such as a UUID. A call that is made again with it
    /// within 24 hours gets what the first one made, whatever the job's revision is by then.
    ///
    /// # Errors
    /// As [`Self::backfill_job`]; [`Error::Refused`] with status 409 also when the idempotency key came with another call.
    pub async fn backfill_job_once(
        &self,
        idempotency_key: &str,
        job_id: &str,
        backfill: &Backfill,
    ) -> Result<LaunchBackfill, Error> {
        self.post_once(Route::Backfill(job_id), backfill, idempotency_key).await
    }
}
