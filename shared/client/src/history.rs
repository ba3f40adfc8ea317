//! Reading what came of a job.

use serde::Deserialize;

use crate::client::{Client, Page, Route};
use crate::error::Error;

/// A run: one firing of a job, with its progress.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Run {
    /// Its name.
    pub run_id: String,
    /// When it was due, RFC 3339.
    pub launch_at: String,
    /// Its number of events.
    pub count: u32,
    /// Where it stands: waiting, running, finished or stopped.
    pub state: String,
    /// Events that were handed to a consumer whose word is not awaited.
    pub delivered: u32,
    /// Events that their consumer released as succeeded.
    pub succeeded: u32,
    /// Events that their consumer released as failed.
    pub failed: u32,
    /// Events that were never released.
    pub expired: u32,
    /// Events that could not be delivered.
    pub dead: u32,
    /// Why nothing (more) of it is delivered.
    pub reason: Option<String>,
    /// How many firings of the job were left out for the same reason, this one included; `None` when only this one was.
    pub skipped_count: Option<u32>,
    /// When the last of them was due, RFC 3339.
    pub skipped_until: Option<String>,
}

/// An event of a run.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct EventRecord {
    /// Its name.
    pub event_id: String,
    /// Its number in the run, from 0.
    pub index: u32,
    /// Where it stands: waiting, in_flight, delivered, succeeded, failed, expired or dead.
    pub status: String,
    /// How often it was delivered or tried, where that is known.
    pub attempts: Option<u32>,
    /// When it came to its end, or when its lease ends, RFC 3339.
    pub at: Option<String>,
    /// Why it failed, if it did.
    pub reason: Option<String>,
}

#[derive(Deserialize)]
struct Runs {
    runs: Vec<Run>,
    next_cursor: Option<String>,
}

#[derive(Deserialize)]
struct Events {
    events: Vec<EventRecord>,
    next_cursor: Option<String>,
}

impl Client {
    /// A page of a job's runs, the latest first; the first page when `cursor` is `None`.
    ///
    /// # Errors
    /// When there is no such job, or the call fails.
    pub async fn runs(&self, job_id: &str, cursor: Option<&str>) -> Result<Page<Run>, Error> {
        let page: Runs = self.get(Route::Runs(job_id), cursor).await?;
        Ok(Page { rows: page.runs, next_cursor: page.next_cursor })
    }

    /// A page of a run's events, by index; the first page when `cursor` is `None`.
    ///
    /// # Errors
    /// When there is no such run, or the call fails.
    pub async fn events(
        &self,
        job_id: &str,
        run_id: &str,
        cursor: Option<&str>,
    ) -> Result<Page<EventRecord>, Error> {
        let page: Events = self.get(Route::Events(job_id, run_id), cursor).await?;
        Ok(Page { rows: page.events, next_cursor: page.next_cursor })
    }
}
